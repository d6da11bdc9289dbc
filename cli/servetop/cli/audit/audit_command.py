"""`servetop audit`: runs another load generator against the simulator, whose truth is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from servetop.analysis.summary.summary_json import plain_object
from servetop.cli.audit.audit_text import report_lines
from servetop.cli.configuration.server_settings import server_settings
from servetop.cli.options.audit_options import AuditOptions
from servetop.cli.options.serve_options import ServeOptions
from servetop.core.clock import wall_clock
from servetop.core.errors import ExitCode, UsageError
from servetop.core.text import formats
from servetop.core.text.known_secrets import redactor_of_command
from servetop.run import console
from servetop.run.audit.audit_report import audit_report
from servetop.run.audit.audit_run import ObservedLoad, observe_client
from servetop.run.audit.audit_schema import VERSION
from servetop.run.audit.client_command import check_command
from servetop.run.audit.client_result import ClientResult, read_client_result
from servetop.run.audit.observed_recording import check_target, record_observed


def run_audit(options: AuditOptions, words: Sequence[str]) -> int:
    """Run the client of this command, print what the server saw of it, and return the exit code.

    OK; INTERRUPTED after a signal; RUN_FAILED if the client failed or sent nothing; USAGE if its result cannot be read.
    UsageError, EngineError or ServetopError before the client runs.
    """
    check_command(words)
    if options.format is not None and options.result is None:
        raise UsageError("--format is the format of the client's result: add --result FILE")
    if options.record is not None:
        check_target(options.record.expanduser())
    redactor = redactor_of_command(words)
    began = wall_clock()
    observed = observe_client(
        server_settings(_served(options)),
        words,
        timeout=options.timeout,
        on_line=lambda line: console.quote([redactor.text(line)]),
    )
    if options.record is not None and observed.requests:
        record_observed(observed, options.record.expanduser())
    result, reason = _result(options, since=began)
    report = audit_report(observed, redactor.data(list(words)), result=result, file=str(options.result or ""))
    end = _end(observed, reason, timeout=options.timeout)
    if options.as_json:
        outcome = {"schema_version": VERSION, "exit_code": int(end.code), "error": end.reason or None}
        console.out_json({**outcome, **plain_object(report)})
    else:
        console.out(*report_lines(report))
    if end.reason:
        console.quote(map(redactor.text, end.last_lines))
        console.message(redactor.text(end.reason))
    return int(end.code)


@dataclass(frozen=True, slots=True)
class _End:
    """How an audit ended: exit code, the reason in one line, and the lines of the client's output that go with it."""

    code: ExitCode
    reason: str = ""
    last_lines: Sequence[str] = ()


def _served(options: AuditOptions) -> ServeOptions:
    return ServeOptions(
        host=options.host,
        port=options.port,
        served_model_name=options.served_model_name,
        served=options.served,
        emulated=options.emulated,
    )


def _result(options: AuditOptions, *, since: float) -> tuple[ClientResult | None, str]:
    """Return the client's result, or why it cannot be read."""
    if options.result is None:
        return None, ""
    try:
        return read_client_result(options.result.expanduser(), options.format, since=since), ""
    except UsageError as error:
        return None, str(error)


def _end(observed: ObservedLoad, unread: str, *, timeout: float | None) -> _End:
    """Return how an audit ended, whose client's result could not be read for the reason `unread`."""
    if observed.interrupted is not None:
        return _End(ExitCode.INTERRUPTED, f"ended by {observed.interrupted}, and the client with it")
    if observed.timed_out:
        ran = formats.seconds(timeout or 0.0)
        return _End(ExitCode.RUN_FAILED, f"the client was still running after {ran} and was ended: raise --timeout")
    if observed.exit_code:
        return _End(ExitCode.RUN_FAILED, f"the client {observed.ending}: see its last lines above", observed.last_lines)
    if not observed.requests:
        reason = "the client sent no request that generates tokens: does its command use {url}?"
        return _End(ExitCode.RUN_FAILED, reason, observed.last_lines)
    return _End(ExitCode.USAGE, unread) if unread else _End(ExitCode.OK)
