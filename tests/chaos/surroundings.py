"""Runs where something around them fails: the disk, limits, the clock, the environment, permissions."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.chaos.case import Case, Fault, Result
from tests.chaos.invariants import Harm, check_recording, check_words
from tests.chaos.ledger import What
from tests.chaos.place import PATIENCE, ROOT, Ended, Place
from tests.chaos.processes import until

LOAD = ("--input-len", "6", "--output-len", "6", "--headless")
NOBODY_UID = 65534
NOT_RECORDED = (
    "not recorded",
    "cannot record",
    "cannot be written",
    "full",
    "moved",
    "removed",
    "no recording",
    "large",
)
"""One of these must be in the words of a run whose recording is not whole."""


def disk_full(case: Case, folder: Path) -> Result:
    """A file system of a few hundred kilobytes (as root), else a limit on the size of files."""
    chance = case.chance()
    place, result = Place(case, folder), Result()
    size = chance.choice((40, 100, 160, 250, 400)) << 10
    with small_disk(place, size) as before, place.server() as url:
        seconds = str(chance.choice((2, 3, 5)))
        words = [*LOAD, "--duration", seconds, "--request-rate", "60", "--url", url, "--record", str(place.recording)]
        ended = place.finish(place.start(words, before=before), result)
        check_words(ended, result)
        _check_missing(place, ended, result)
    result.note("tmpfs" if not before else "RLIMIT_FSIZE")
    return result


@contextlib.contextmanager
def small_disk(place: Place, size: int) -> Iterator[list[str]]:
    """The recordings' folder on a small file system; without the right to make one, words that limit files."""
    disk = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place.records)]
    if os.geteuid() != 0 or subprocess.run(disk, capture_output=True, check=False).returncode != 0:
        yield ["prlimit", f"--fsize={size}"]
        return
    try:
        yield []
    finally:
        subprocess.run(["umount", "--lazy", str(place.records)], check=True)


def recording_gone(case: Case, folder: Path) -> Result:
    """The recording, or its folder, is removed, moved or put in its place by another file during the run."""
    chance = case.chance()
    place, result = Place(case, folder), Result()
    deed = chance.choice(("remove folder", "move folder", "remove file", "move file", "replace file", "forbid folder"))
    result.note(deed)
    with place.server() as url:
        words = [*LOAD, "--duration", "4", "--request-rate", "40", "--url", url, "--record", str(place.recording)]
        process = place.start(words)
        until(lambda: place.recording.exists() or process.poll() is not None, seconds=PATIENCE)
        until(lambda: process.poll() is not None, seconds=chance.uniform(0.0, 3.0))
        _do(deed, place)
        ended = place.finish(process, result)
    check_words(ended, result)
    _check_missing(place, ended, result)
    return result


def _do(deed: str, place: Place) -> None:
    match deed:
        case "remove folder":
            shutil.rmtree(place.records, ignore_errors=True)
        case "move folder":
            place.records.rename(place.folder / "elsewhere")
        case "remove file":
            place.recording.unlink(missing_ok=True)
        case "move file":
            with contextlib.suppress(FileNotFoundError):
                place.recording.rename(place.records / "other.servetop")
        case "replace file":
            (place.folder / "new").write_text("precious")
            (place.folder / "new").replace(place.recording)
        case _:
            place.records.chmod(0o500)


def _check_missing(place: Place, ended: Ended, result: Result) -> None:
    """All is recorded, wherever it lies now; or the exit code is not 0 and the words say that it is not."""
    here = [each for each in place.folder.glob("*/*.servetop") if each.stat().st_size > 200]
    whole = Result()
    for file in here[:1]:
        place.recording = file
    check_recording(place, ended, whole, harm=Harm.NONE)
    if not here or whole.findings:
        reported = ended.code not in (0, 99) and any(word in ended.err for word in NOT_RECORDED)
        if not reported:
            why = whole.findings[0].words if whole.findings else "no recording is left"
            result.found(
                Fault.LOST, f"exit code {ended.code}, {why}, and the words do not say so: {ended.err[-700:]!r}"
            )


def few_files(case: Case, folder: Path) -> Result:
    """A low limit on open files."""
    return _limited(case, folder, lambda chance: f"--nofile={chance.randint(12, 80)}")


def little_memory(case: Case, folder: Path) -> Result:
    """A low limit on address space."""
    return _limited(case, folder, lambda chance: f"--as={chance.randint(60, 900) << 20}")


def _limited(case: Case, folder: Path, limit: Callable[[random.Random], str]) -> Result:
    chance = case.chance()
    place, result = Place(case, folder), Result()
    if shutil.which("prlimit") is None:
        return Result(tried=0, notes={"left out: no prlimit here": 1})
    with place.server() as url:
        count = str(chance.choice((10, 60)))
        load = [
            *LOAD,
            "--num-prompts",
            count,
            "--max-concurrency",
            count,
            "--url",
            url,
            "--record",
            str(place.recording),
        ]
        ended = place.finish(place.start(load, before=["prlimit", limit(chance)]), result)
    result.note(f"exit code {ended.code}")
    check_words(ended, result)
    check_recording(place, ended, result, harm=Harm.ENDED)
    return result


def clock_steps(case: Case, folder: Path) -> Result:
    """The wall clock is set during the run: by seconds or by years, forward and back."""
    chance = case.chance()
    place, result = Place(case, folder), Result()
    steps = ",".join(f"{chance.uniform(0.2, 3.0):.2f}:{chance.choice(_STEPS)}" for _ in range(chance.randint(1, 4)))
    result.note("clock steps")
    shim = {"PYTHONPATH": f"{ROOT / 'tests' / 'chaos' / 'wall_clock'}:{ROOT}", "SERVETOP_CHAOS_CLOCK": steps}
    with place.server() as url:
        words = [
            *LOAD,
            "--duration",
            "2",
            "--request-rate",
            "40",
            "--url",
            url,
            "--record",
            str(place.recording),
            "--json",
        ]
        ended = place.finish(place.start(words, env=shim), result)
    check_words(ended, result)
    check_recording(place, ended, result, harm=Harm.NONE)
    if ended.code not in (0, 99):
        result.found(Fault.LOST, f"exit code {ended.code} with clock steps {steps}: {ended.last_line}")
    return result


_STEPS = (-1e9, -86400.0, -3600.0, -1.5, 1.5, 3600.0, 86400.0, 1e8, 3e9)

ODD_SURROUNDINGS: tuple[dict[str, str | None], ...] = (
    {"HOME": None},
    {"HOME": None, "SERVETOP_RECORDINGS": None},
    {"HOME": "/nonexistent", "SERVETOP_RECORDINGS": None},
    {"HOME": ""},
    {"TERM": "dumb"},
    {"TERM": None},
    {"TERM": "no-such-terminal"},
    {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    {"LANG": "de_DE.ISO-8859-1", "LC_ALL": "de_DE.ISO-8859-1", "PYTHONUTF8": "0"},
    {"PYTHONIOENCODING": "ascii"},
    {"LANG": None},
    {"NO_COLOR": "1"},
    {"FORCE_COLOR": "1"},
    {"COLUMNS": "0", "LINES": "0"},
    {"COLUMNS": "1"},
    {"COLUMNS": "banana"},
    {"PATH": "/nonexistent"},
    {"TZ": "no/such/zone"},
    {"TMPDIR": "/nonexistent"},
    {"USER": None, "LOGNAME": None},
    {"HTTP_PROXY": "", "HTTPS_PROXY": ""},
)


def odd_surroundings(case: Case, folder: Path) -> Result:
    """Environments that lack something, or have it in an unusual form."""
    place, result = Place(case, folder), Result()
    odd = ODD_SURROUNDINGS[(case.number + case.seed) % len(ODD_SURROUNDINGS)]
    result.note(" ".join(f"{name}={value}" for name, value in odd.items()))
    with place.server() as url:
        words = [*LOAD, "--num-prompts", "20", "--request-rate", "50", "--url", url, "--record", str(place.recording)]
        ended = place.finish(place.start(words, env=odd), result)
    check_words(ended, result, coloured="FORCE_COLOR" in odd)
    check_recording(place, ended, result, harm=Harm.NONE)
    if ended.code not in (0, 99):
        result.found(Fault.LOST, f"exit code {ended.code} with {odd}: {ended.err[-500:]!r}")
    return result


def as_nobody(case: Case, folder: Path) -> Result:
    """A folder that may not be written to, as a user who is not root; recordings in it that others wrote."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        return Result(tried=0, notes={"left out: only root can become another user (setpriv)": 1})
    place, result = Place(case, folder), Result()
    before = ["setpriv", f"--reuid={NOBODY_UID}", f"--regid={NOBODY_UID}", "--clear-groups"]
    if not _may_run(before):
        return Result(tried=0, notes={"left out: another user cannot run this Python": 1})
    folder.chmod(0o755)
    place.temporary.chmod(0o777)
    deed = ("write", "read", "home")[(case.number + case.seed) % 3]
    result.note(f"as another user: {deed}")
    with place.server() as url:
        words = [*LOAD, "--num-prompts", "20", "--request-rate", "50", "--url", url]
        if deed == "read":
            place.finish(place.start([*words, "--record", str(place.recording)]), result)
            place.recording.chmod(0o644)
            ended = place.finish(place.start(["summary", str(place.recording)], before=before), result)
            wanted = {0}
        elif deed == "write":
            ended = place.finish(place.start([*words, "--record", str(place.recording)], before=before), result)
            wanted = {1}
        else:
            env = {"SERVETOP_RECORDINGS": None}
            ended = place.finish(place.start(words, before=before, env=env), result)
            wanted = {1}
    check_words(ended, result)
    if ended.code not in wanted:
        result.found(Fault.INVENTED, f"{deed}: exit code {ended.code}: {ended.err[-500:]!r}")
    if deed != "read" and place.ledger.count(What.RECEIVED):
        result.found(Fault.LOST, "requests were sent although nothing could be recorded")
    return result


def _may_run(before: list[str]) -> bool:
    words = [*before, sys.executable, "-c", "import servetop.cli.main, tests.chaos.case"]
    done = subprocess.run(words, env={"PYTHONPATH": str(ROOT)}, cwd="/", capture_output=True, check=False)
    return done.returncode == 0
