"""Reads damaged recordings with every command that reads one: at most one line, no traceback, no hang.

Each file is read in a process forked for it, which can be ended wherever it hangs, and whose memory is its own.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import pickle
import random
import resource
import select
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from servetop.analysis.live_stats import live_stats
from servetop.analysis.series.tick_history import TickHistory
from servetop.cli.main import main
from servetop.core.errors import ServetopError
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.verify.verdict import VerifyVerdict
from servetop.recordings.verify.verify import verify
from tests.chaos.case import Case, Fault, Finding, Result
from tests.chaos.hostile_text import OUTLAWS
from tests.chaos.mutations import GOLDEN, IN_SQL, OLD, PAGE, base, mutate

BATCH = 25
"""Mutated recordings in a case."""
MOST_SECONDS = 40
"""Of processor time, for all commands on one of them: a machine that others use is slow, not the reader."""
PATIENCE = 600.0
"""Seconds, for one that waits."""
MOST_MEMORY = 900 << 20
Counts = tuple[int, ...]
SUMMARY, VERIFY = "summary --json", "verify --json"
COMMANDS = (
    ("summary", "{file}"),
    ("summary", "--json", "{file}"),
    ("ls", "{folder}"),
    ("verify", "{file}"),
    ("verify", "--json", "{file}"),
    ("look", "{file}"),
)
VERDICTS = {0: "sound", 1: "not sound", 2: "not a recording"}
"""Of `servetop verify`, by its exit code."""


@dataclass(frozen=True, slots=True)
class Before:
    """A recording before it was damaged."""

    ticks: Mapping[int, Counts]
    bytes: tuple[bytes, bytes]
    """Of the file and of its log."""
    torn: bool
    """Damaged below SQLite, and its ticks have checksums: none may differ. Else what is there is content."""


def mutated(case: Case, folder: Path) -> Result:
    """A batch of them; a finding names which one of the batch."""
    result = Result(tried=0)
    _warm_up()
    for number in range(BATCH):
        chance = random.Random(f"{case.seed}:{case.name}:{number}")
        place = folder / str(number)
        place.mkdir()
        file = place / "run.servetop"
        sound = base(chance, file)
        with _put_back(file):  # reading moves the log into the file
            ticks = _ticks(file)
            if number == 0 and verify(file).verdict is not VerifyVerdict.SOUND:
                result.found(Fault.INVENTED, f"{sound}, as it was written, is not sound: {verify(file).checks}")
        before = Before(ticks, _bytes(file), torn=True)
        ways = [mutate(chance, file) for _ in range(chance.choice((1, 1, 1, 2)))]
        if set(ways) & set(IN_SQL) or OLD in sound:  # altered as SQLite would, or ticks without a checksum
            before = replace(before, torn=False)
        result.tried += 1
        for finding in _apart(functools.partial(_findings, file, before)):
            result.found(finding.fault, f"file {number}, {sound}, {', '.join(ways)}: {finding.words}")
    return result


@contextlib.contextmanager
def _put_back(file: Path) -> Iterator[None]:
    """File and log are as they were, at the end."""
    whole, log = _bytes(file)
    yield
    file.write_bytes(whole)
    if log:
        file.with_name(f"{file.name}-wal").write_bytes(log)


def _warm_up() -> None:
    """Load what reading needs before the forks."""
    _read(GOLDEN / "dies.servetop")


def _apart(read: Callable[[], list[Finding]]) -> Sequence[Finding]:
    """What a child found, or that it did not come to an end."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(ours)
            resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, 2 * MOST_SECONDS))
            os.write(theirs, pickle.dumps(read())[: 1 << 16])
        except Exception:
            injector = f"the injector itself failed: {traceback.format_exc()[-1800:]}"
            os.write(theirs, pickle.dumps([Finding(Fault.TRACEBACK, injector)]))
        finally:
            os._exit(0)  # whatever happens: a child that continues would play the parent's cases
    os.close(theirs)
    deadline, data, ended = time.monotonic() + PATIENCE, b"", False
    while not ended and select.select([ours], [], [], max(0.0, deadline - time.monotonic()))[0]:
        piece = os.read(ours, 1 << 16)
        data, ended = data + piece, not piece
    os.close(ours)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if not ended or os.WTERMSIG(status) == signal.SIGXCPU:
        return [Finding(Fault.HANG, f"reading took more than {MOST_SECONDS} s of processor time, or {PATIENCE:.0f} s")]
    found: list[Finding] = pickle.loads(data) if data else [Finding(Fault.TRACEBACK, "the reader died")]
    return found


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """The exit code and output of one command on a file."""

    code: int
    out: str
    err: str

    @property
    def printed(self) -> str:
        """All of it."""
        return self.out + self.err


def _read(file: Path) -> tuple[dict[str, CommandOutput], list[Finding]]:
    """What each command says of a file, up to the first one that goes wrong, and how."""
    output: dict[str, CommandOutput] = {}
    for words in COMMANDS:
        out, err = io.StringIO(), io.StringIO()
        argv = [word.format(file=file, folder=file.parent) for word in words]
        name = " ".join(argv[:-1])
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = _look(file) if name == "look" else main(argv)
        except Exception:
            return output, [Finding(Fault.TRACEBACK, f"{name}: {traceback.format_exc()[-1800:]}")]
        output[name] = CommandOutput(code, out.getvalue(), err.getvalue())
        if findings := _wrong_words(name, output[name]):
            return output, findings
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    return output, [Finding(Fault.MEMORY, f"{peak >> 20} MiB")] if peak > MOST_MEMORY else []


def _wrong_words(name: str, output: CommandOutput) -> list[Finding]:
    if "Warning: " in output.printed and ".py:" in output.printed:
        return [Finding(Fault.TRACEBACK, f"{name}: a warning of Python's: {output.printed[-600:]}")]
    if outlaws := sorted(set(output.printed) & set(OUTLAWS)):
        return [Finding(Fault.ESCAPE, f"{name} prints {outlaws!r}")]
    if output.code not in ((0, 1, 2) if name.startswith("verify") else (0, 1)):
        return [Finding(Fault.INVENTED, f"{name}: exit code {output.code}: {output.printed[-300:]}")]
    return []


def _findings(file: Path, before: Before) -> list[Finding]:
    output, findings = _read(file)
    if findings:
        return findings
    ticks = _ticks(file)
    return misjudged(file, before, ticks, verdict=output[VERIFY], summary=output[SUMMARY]) + _invented(ticks, before)


def _ticks(file: Path) -> dict[int, Counts]:
    """What each tick counts; none where nothing can be read."""
    with contextlib.suppress(ServetopError), contextlib.closing(RecordingReader.open(file)) as reader:
        clients = [tick.client for tick in reader.ticks()]
        return {each.index: (each.sent, each.ok, each.failed, each.output_tokens, each.chunks) for each in clients}
    return {}


def _bytes(file: Path) -> tuple[bytes, bytes]:
    log = file.with_name(f"{file.name}-wal")
    return file.read_bytes(), log.read_bytes() if log.exists() else b""


def _invented(ticks: Mapping[int, Counts], before: Before) -> list[Finding]:
    """Ticks of a torn file that are not those of the file that it was."""
    odd = {index: counts for index, counts in ticks.items() if before.ticks.get(index) != counts}
    return [Finding(Fault.INVENTED, f"torn ticks are shown: {odd}")] if odd and before.torn else []


def misjudged(
    file: Path, before: Before, ticks: Mapping[int, Counts], *, verdict: CommandOutput, summary: CommandOutput
) -> list[Finding]:
    """A verdict of `servetop verify` that does not hold (docs/reference/recording-format.md defines each)."""
    try:
        (reported,) = json.loads(verdict.out)
    except ValueError:
        return [Finding(Fault.INVENTED, f"verify: exit code {verdict.code} and no verdict: {verdict.printed[-300:]}")]
    wrong = []
    if reported["verdict"] != VERDICTS[verdict.code]:
        wrong.append(f"exit code {verdict.code} for {reported['verdict']}")
    if verdict.code == 0 and (summary.code != 0 or json.loads(summary.out).get("recording_state") == "damaged"):
        wrong.append(f"sound, and summary says {summary.code}: {summary.printed[-300:]}")
    if verdict.code == 0 and before.torn and list(ticks.items()) != list(before.ticks.items())[: len(ticks)]:
        wrong.append("sound, and ticks are missing or altered")
    if verdict.code == 0 and before.torn and len(ticks) < len(before.ticks) and not _cut_off(file, before):
        wrong.append("sound, and the last ticks are lost, although the log was not cut off")
    if verdict.code == 1 and _bytes(file) == before.bytes:
        wrong.append(f"not sound, and nothing was altered: {reported['checks']}")
    if verdict.code == 2 and before.torn and not _schema_altered(file, before):
        wrong.append(f"not a recording, and its marks and tables are there: {reported['checks']}")
    return [Finding(Fault.INVENTED, f"verify: {words}") for words in wrong]


def _cut_off(file: Path, before: Before) -> bool:
    """Its log is shorter than it was: that of a run that was killed earlier."""
    return len(_bytes(file)[1]) < len(before.bytes[1])


def _schema_altered(file: Path, before: Before) -> bool:
    """One of the pages that say what the file is and which tables it has."""
    was, now = before.bytes[0], _bytes(file)[0]
    pages = [at for at in range(0, len(was), PAGE) if at == 0 or b"CREATE " in was[at : at + PAGE]]
    return any(was[at : at + PAGE] != now[at : at + PAGE] for at in pages)


def _look(file: Path) -> int:
    """What a dashboard reads and computes."""
    with contextlib.suppress(ServetopError), contextlib.closing(RecordingReader.open(file)) as reader:
        history = TickHistory()
        for tick in reader.poll().ticks:
            history.append(tick)
        if len(history):
            live_stats(history, history.ticks[-1].end, span=1.0)
    return 0
