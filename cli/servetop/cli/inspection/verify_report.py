"""`servetop verify`: what of a recording is sound and what is not, for people and as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from servetop.core.errors import ExitCode, RecordingError, UsageError
from servetop.recordings.library.catalog import resolve
from servetop.recordings.verify.verdict import Verified, VerifyCheck, VerifyVerdict
from servetop.recordings.verify.verify import verify
from servetop.run import console

_EXIT_CODES: Mapping[VerifyVerdict, ExitCode] = {
    VerifyVerdict.SOUND: ExitCode.OK,
    VerifyVerdict.NOT_SOUND: ExitCode.RUN_FAILED,
    VerifyVerdict.NOT_A_RECORDING: ExitCode.USAGE,
}


def run_verify(names: Sequence[str], *, as_json: bool) -> int:
    """Print the checks of each recording; the exit code of the worst verdict. UsageError: there is none of a name."""
    try:
        found = {path: verify(path) for path in map(resolve, names)}
    except RecordingError as error:
        raise UsageError(str(error)) from error
    if as_json:
        console.out_json([_as_data(path, verified) for path, verified in found.items()])
    else:
        for path, verified in found.items():
            console.out(f"{path}: {verified.verdict}", *map(_line, verified.checks))
    return max(int(_EXIT_CODES[verified.verdict]) for verified in found.values())


def _as_data(path: Path, verified: Verified) -> dict[str, object]:
    checks = [dataclasses.asdict(each) for each in verified.checks]
    sound = verified.verdict is VerifyVerdict.SOUND
    return {"recording": str(path), "verdict": verified.verdict, "sound": sound, "checks": checks}


def _line(check: VerifyCheck) -> str:
    return f"  {'✓' if check.sound else '✗'} {check.name:<10}  {check.detail}"
