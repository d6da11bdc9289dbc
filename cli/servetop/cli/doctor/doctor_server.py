"""`servetop doctor URL`: asks a server over each endpoint and prints what a run, or a bug report, needs to know."""

from __future__ import annotations

import asyncio
import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from servetop.cli.configuration.configure import run_config
from servetop.cli.configuration.idle_options import RunChoices, refuse_idle_of_run
from servetop.cli.doctor.doctor_server_text import report_parts
from servetop.cli.options.conversion import read_options
from servetop.cli.options.declaration import GivenValues, Option, declared
from servetop.cli.options.doctor_options import DoctorOptions
from servetop.cli.options.run_options import RunOptions
from servetop.cli.tables import out_tables
from servetop.core.errors import ExitCode
from servetop.core.text.known_secrets import redactor_of
from servetop.core.text.redaction import Redactor
from servetop.run import console
from servetop.run.server_check.check_server import check_server
from servetop.run.server_check.server_report import ServerReport

BODY_CHARS = 4_000
"""Characters of a response that a report has as received."""
_OWN = ("server", "as_json")


def run_server_doctor(url: str, given: GivenValues, *, as_json: bool) -> int:
    """Print the report; OK if an endpoint answered, else ENGINE_FAILED. UsageError for invalid options."""
    values = {name: value for name, value in given.items() if name not in _OWN}
    config = run_config(read_options(RunOptions, {**values, "url": (url,)}), ())
    refuse_idle_of_run(values, RunChoices(config))
    report = asyncio.run(check_server(config))
    shown = redacted(report_data(report, command=run_command(url, values, report.options)), redactor_of(config))
    if as_json:
        console.out_json(shown, indent=2)
    else:
        out_tables(*report_parts(shown))
        if report.answered:
            console.out("", "Run it:", f"  {shlex.join(shown['command'])}")  # never wrapped, so that it can be copied
    return int(ExitCode.OK if report.answered else ExitCode.ENGINE_FAILED)


def report_data(report: ServerReport, *, command: Sequence[str]) -> dict[str, Any]:
    """Return the report as plain data, with the command that starts a run as `command`."""
    return {"answered": report.answered, "command": list(command), **dataclasses.asdict(report)}


def redacted(data: Mapping[str, Any], redactor: Redactor) -> dict[str, Any]:
    """The report without secrets, with the beginnings of the responses: cut afterwards, so that no secret is cut."""
    shown: dict[str, Any] = redactor.data(data)
    for each in shown["endpoints"]:
        each["body"] = each["body"][:BODY_CHARS]
    return shown


def run_command(url: str, given: GivenValues, needed: Sequence[str]) -> list[str]:
    """Return the arguments of a run on this server: the options given to `doctor`, then those that it needs."""
    words = ["servetop", "--url", url]
    for option in declared(DoctorOptions):
        if option.name not in given or option.name in _OWN or option.spelling in needed:
            continue
        assert isinstance(option.form, Option)
        value = given[option.name]
        texts = [value] if isinstance(value, str) else [] if isinstance(value, bool) else list(value)
        words += [word for text in texts for word in (option.spelling, text)] or [option.spelling]
    return [*words, *needed]
