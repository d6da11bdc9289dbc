"""`servetop doctor`: this machine, or the server at a URL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from servetop.cli.options.doctor_options import DoctorOptions
from servetop.core.errors import UsageError


def examine_machine_or_server(options: DoctorOptions, given: Mapping[str, str | Sequence[str] | bool]) -> int:
    """Examine the server of this command, else this machine; UsageError for options that need a server."""
    if options.server is not None:
        from servetop.cli.doctor.doctor_server import run_server_doctor

        return run_server_doctor(options.server, given, as_json=options.as_json)
    if set(given) - {"as_json"}:
        raise UsageError("these options are for a server: add its URL, as in servetop doctor http://gpu7:8000")
    from servetop.cli.doctor.doctor import run_doctor

    return run_doctor(as_json=options.as_json)
