"""`servetop audit`: runs another load generator against the simulator, whose truth is known."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from servetop.cli.audit.audit_text import report_lines
from servetop.cli.configuration.server_settings import server_settings
from servetop.cli.options.audit_options import AuditOptions
from servetop.cli.options.serve_options import ServeOptions
from servetop.core.clock import wall_clock
from servetop.core.errors import EngineError, ExitCode, UsageError
from servetop.core.text.formats import seconds
from servetop.run import console
from servetop.run.audit.audit_report import audit_report
from servetop.run.audit.audit_run import ObservedLoad, observe_client
from servetop.run.audit.audit_schema import VERSION
from servetop.run.audit.client_command import check_command
from servetop.run.audit.client_result import ClientResult, read_client_result


def run_audit(options: AuditOptions, words: Sequence[str]) -> int:
    """Run the client, print what the server saw of it, and return OK, or INTERRUPTED after a signal.

    After the report, EngineError if the client failed or saw no response, and UsageError for a result that cannot be
    read.
    """
    check_command(words)
    if options.format is not None and options.result is None:
        raise UsageError("--format is the format of the client's result: add --result FILE")
    began = wall_clock()
    observed = observe_client(
        server_settings(_served(options)), words, timeout=options.timeout, on_line=lambda line: console.quote([line])
    )
    result, reason = _result(options, since=began)
    report = audit_report(observed, words, result=result, file=str(options.result or ""))
    if options.as_json:
        console.out_json({"schema_version": VERSION, **dataclasses.asdict(report)})
    else:
        console.out(*report_lines(report))
    return _exit_code(observed, reason, timeout=options.timeout)


def _served(options: AuditOptions) -> ServeOptions:
    return ServeOptions(
        host=options.host,
        port=options.port,
        served_model_name=options.served_model_name,
        served=options.served,
        emulated=options.emulated,
    )


def _result(options: AuditOptions, *, since: float) -> tuple[ClientResult | None, UsageError | None]:
    """Return the client's result, or why it cannot be read."""
    if options.result is None:
        return None, None
    try:
        return read_client_result(Path(options.result).expanduser(), options.format, since=since), None
    except UsageError as error:
        return None, error


def _exit_code(observed: ObservedLoad, reason: UsageError | None, *, timeout: float | None) -> int:
    """Return the exit code of an audit whose report is printed; EngineError and UsageError as `run_audit`."""
    if observed.interrupted is not None:
        console.message(f"ended by {observed.interrupted}, and the client with it")
        return int(ExitCode.INTERRUPTED)
    if observed.timed_out:
        raise _ClientError(
            f"the client was still running after {seconds(timeout or 0.0)} and was ended: raise --timeout"
        )
    if observed.exit_code:
        raise _ClientError(f"the client {observed.ending}: see its last lines above", tuple(observed.last_lines))
    if not observed.requests:
        raise _ClientError("the client sent no request that generates tokens: does its command use {url}?")
    if reason is not None:
        raise reason
    return int(ExitCode.OK)


class _ClientError(EngineError):
    """The client failed, or did nothing; with the last lines of its output."""

    exit_code = ExitCode.RUN_FAILED
