"""Reads damaged recordings by every command that reads one: one line at most, never a traceback, never for long.

Each file is read in a process forked for it, which can be ended wherever it hangs, and whose memory is its own.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import pickle
import random
import resource
import select
import signal
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from servetop.cli.main import main
from servetop.core.errors import ServetopError
from servetop.core.history import TickHistory
from servetop.core.stats import live_stats
from servetop.recordings.reader import RecordingReader
from tests.chaos.case import Case, Fault, Finding, Result
from tests.chaos.hostile_text import OUTLAWS
from tests.chaos.mutations import GOLDEN, IN_SQL, OLD, base, mutate

BATCH = 25
"""Mutated recordings in a case."""
PATIENCE = 40.0
"""Seconds for all commands on one of them, on a busy machine."""
MOST_MEMORY = 900 << 20
Counts = tuple[int, ...]
COMMANDS = (
    ("summary", "{file}"),
    ("summary", "--json", "{file}"),
    ("ls", "{folder}"),
    ("verify", "{file}"),
    ("look", "{file}"),
)


def mutated(case: Case, folder: Path) -> Result:
    """A batch of them; a finding names which one of the batch."""
    result = Result(tried=0)
    _read(GOLDEN / "dies.servetop")  # loads what reading needs, before the forks
    for number in range(BATCH):
        chance = random.Random(f"{case.seed}:{case.name}:{number}")
        place = folder / str(number)
        place.mkdir()
        file = place / "run.servetop"
        sound = base(chance, file)
        ticks = _ticks(file)
        ways = [mutate(chance, file) for _ in range(chance.choice((1, 1, 1, 2)))]
        result.tried += 1
        sound_ticks = None if set(ways) & set(IN_SQL) or OLD in sound else ticks  # older ticks have no checksum
        for finding in _apart(functools.partial(_findings, file, sound_ticks)):
            result.found(finding.fault, f"file {number}, {sound}, {', '.join(ways)}: {finding.words}")
    return result


def _apart(read: Callable[[], list[Finding]]) -> Sequence[Finding]:
    """What a child found, or that it did not come to an end."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ours)
        os.write(theirs, pickle.dumps(read())[: 1 << 16])
        os._exit(0)
    os.close(theirs)
    deadline, data = time.monotonic() + PATIENCE, b""
    try:
        while select.select([ours], [], [], max(0.0, deadline - time.monotonic()))[0]:
            piece = os.read(ours, 1 << 16)
            if not piece:
                found: list[Finding] = pickle.loads(data) if data else [Finding(Fault.TRACEBACK, "the reader died")]
                return found
            data += piece
        return [Finding(Fault.HANG, f"reading took more than {PATIENCE:.0f} s")]
    finally:
        os.close(ours)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _read(file: Path) -> list[Finding]:
    """The first thing that is wrong in what the commands do with a file."""
    for words in COMMANDS:
        out = io.StringIO()
        said = [word.format(file=file, folder=file.parent) for word in words]
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
                code = _look(file) if said[0] == "look" else main(said)
        except Exception:
            return [Finding(Fault.TRACEBACK, f"{said[0]}: {traceback.format_exc()[-1800:]}")]
        printed = out.getvalue()
        if "Warning: " in printed and ".py:" in printed:
            return [Finding(Fault.TRACEBACK, f"{said[0]}: a warning of Python's: {printed[-600:]}")]
        if outlaws := sorted(set(printed) & set(OUTLAWS)):
            return [Finding(Fault.ESCAPE, f"{said[0]} prints {outlaws!r}")]
        if code not in (0, 1, 2):
            return [Finding(Fault.INVENTED, f"{said[0]}: exit code {code}: {printed[-300:]}")]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    return [Finding(Fault.MEMORY, f"{peak >> 20} MiB")] if peak > MOST_MEMORY else []


def _findings(file: Path, ticks: Mapping[int, Counts] | None) -> list[Finding]:
    return _read(file) or ([] if ticks is None else _invented(file, ticks))


def _ticks(file: Path) -> dict[int, Counts]:
    """What each tick counts; none where nothing can be read."""
    with contextlib.suppress(ServetopError), contextlib.closing(RecordingReader.open(file)) as reader:
        clients = [tick.client for tick in reader.ticks()]
        return {each.index: (each.sent, each.ok, each.failed, each.output_tokens, each.chunks) for each in clients}
    return {}


def _invented(file: Path, sound: Mapping[int, Counts]) -> list[Finding]:
    """Ticks of a torn file that are not those of the file that it was."""
    odd = {index: counts for index, counts in _ticks(file).items() if sound.get(index) != counts}
    return [Finding(Fault.INVENTED, f"torn ticks are shown: {odd}")] if odd else []


def _look(file: Path) -> int:
    """What a dashboard reads and computes."""
    with contextlib.suppress(ServetopError), contextlib.closing(RecordingReader.open(file)) as reader:
        history = TickHistory()
        for tick in reader.poll().ticks:
            history.append(tick)
        if len(history):
            live_stats(history, history.ticks[-1].end, span=1.0)
    return 0
