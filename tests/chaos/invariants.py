"""The invariants of every case: the server's count, the recording and the messages agree."""

from __future__ import annotations

import contextlib
import json
import re
import signal
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from servetop.analysis.summary.summary_json import summary_json
from servetop.core.errors import RecordingError
from servetop.core.events import RequestStatus, RunEnd
from servetop.core.tick import Tick
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.summary.summary import run_summary
from tests.chaos.case import Fault, Result
from tests.chaos.hostile_text import OUTLAWS
from tests.chaos.ledger import Entry, Ledger, What
from tests.chaos.place import Ended, Place

SETTLED = 2.0
"""Seconds before the last tick of a killed run: what the server had answered by then must be in its recording.

On a busy machine the sender reads late; twice its reported lag is added."""
ENDINGS = {0, 1, 2, 3, 99, 130, 143}
"""Exit codes that are documented."""


@dataclass(frozen=True, slots=True)
class Row:
    """Of a request that ended, what is compared."""

    status: RequestStatus
    output_tokens: int


@dataclass(frozen=True)
class Recorded:
    """What a recording says, read by servetop's own reader."""

    origin: float
    """CLOCK_MONOTONIC at its second 0."""
    end: RunEnd | None
    ticks: Sequence[Tick]
    requests: Sequence[Row]
    summary: Mapping[str, Any]
    damage: str | None

    @property
    def until(self) -> float:
        """CLOCK_MONOTONIC at the end of the last tick."""
        return self.origin + (self.ticks[-1].end if self.ticks else 0.0)

    @property
    def ok(self) -> list[Row]:
        return [row for row in self.requests if row.status is RequestStatus.OK]


def read(path: Path) -> Recorded | None:
    """None when there is none; RecordingError when it cannot be read."""
    if not path.exists():
        return None
    with contextlib.closing(RecordingReader.open(path)) as reader:
        update = reader.poll()
        rows = [
            Row(RequestStatus(status), tokens) for status, tokens in reader.request_rows(("status", "output_tokens"))
        ]
        origin = reader.header.anchor.origin_ns * 1e-9
        return Recorded(origin, update.end, reader.ticks(), rows, summary_json(run_summary(reader)), reader.damage)


def check_words(ended: Ended, result: Result, *, signalled: bool = False, coloured: bool = False) -> None:
    """No traceback, no control characters (except for requested colours), a documented exit code.

    Where it is not 0, a last line says why.
    """
    printed = ended.out + ended.err
    if signalled and ended.code in _INTERRUPTED_PYTHON and _before_main(ended.err):
        return
    if signalled:
        printed = _IGNORED_BY_IMPORT.sub("", printed)
    if "Traceback (most recent call last)" in printed or "Fatal Python error" in printed:
        result.found(Fault.TRACEBACK, printed[-3000:])
    if "Warning: " in printed and ".py:" in printed:
        result.found(Fault.TRACEBACK, "a warning of Python's: " + printed[-1500:])
    if outlaws := sorted(set(printed) & set(OUTLAWS) - set("\x1b" if coloured else "")):
        result.found(Fault.ESCAPE, f"{outlaws!r} in {printed[-1500:]!r}")
    if ended.code is None or (signalled and ended.code < 0):
        return
    if ended.code not in ENDINGS:
        result.found(Fault.INVENTED, f"exit code {ended.code}, which is not documented: {ended.err[-500:]}")
    if ended.code != 0 and not ended.last_line:
        result.found(Fault.INVENTED, f"exit code {ended.code} without a last line that says why: {ended.err[-800:]!r}")


_INTERRUPTED_PYTHON = {-signal.SIGINT, 1}
"""Exit codes of a Python that an interrupt ended: 1 before it could import `site` and `runpy`."""

_IGNORED_BY_IMPORT = re.compile(
    r"Exception ignored in: <function _get_module_lock.*\nTraceback .*\n(?:  .*\n)+KeyboardInterrupt: ?\n"
)
"""What Python prints of an interrupt that came while it released the lock of a module: it runs on."""


def _before_main(printed: str) -> bool:
    """Whether an interrupt came while Python itself started: a traceback without a function of servetop."""
    frames = re.findall(r'File "([^"]*)", line \d+, in (.*)', printed)
    in_functions = [file for file, function in frames if "/servetop/" in file and function != "<module>"]
    return bool(frames) and not in_functions and printed.rstrip().endswith("KeyboardInterrupt")


class Harm(StrEnum):
    """What was done to a run, and so how exact its recording must be."""

    NONE = "none"
    """Every request that the server received is recorded as what became of it."""
    ENDED = "ended"
    """Every request that the server received is recorded; what was in flight may be so or so."""
    SENDER_LOST = "sender lost"
    """What the senders had not reported yet is lost, and the exit code and the last line say so."""


def check_recording(place: Place, ended: Ended, result: Result, *, harm: Harm) -> None:
    """The recording against the server's count; a run that could not write its end is judged by its last tick."""
    ledger = place.ledger
    try:
        recorded = read(place.recording)
    except RecordingError as error:
        if ended.code == 0 or (ended.code is None and ledger.count(What.ANSWERED)):
            result.found(Fault.LOST, f"the recording cannot be read: {error}")
        return
    if recorded is None:
        if ended.code == 0:
            result.found(Fault.LOST, "exit code 0, and no recording")
        return
    _check_itself(recorded, result)
    if recorded.end is None and ended.code in (0, 99):
        result.found(Fault.LOST, f"exit code {ended.code}, and the recording has no end ({recorded.damage})")
    if recorded.end is None or harm is Harm.SENDER_LOST:
        result.note("recordings without an end" if recorded.end is None else "senders lost")
        _check_killed(recorded, ledger, result)
    else:
        _check_ended(recorded, ledger, ended, result, whole=harm is Harm.NONE)
    received, rows = ledger.count(What.RECEIVED), len(recorded.requests)
    recorded_whole = received - ledger.count(What.NO_ANSWER) <= rows <= received
    if harm is Harm.SENDER_LOST and ended.code == 0 and not recorded_whole:
        result.found(Fault.LOST, "exit code 0 although a sender was lost")


def _check_itself(recorded: Recorded, result: Result) -> None:
    """Ticks, rows and summary say the same."""
    rows = Counter(row.status for row in recorded.requests)
    for name, statuses in {"ok": (RequestStatus.OK,), "failed": _FAILURES}.items():
        in_ticks = sum(getattr(tick.client, name) for tick in recorded.ticks)
        in_rows = sum(rows[status] for status in statuses)
        if in_ticks != in_rows:
            result.found(Fault.LOST, f"{name}: {in_ticks} in the ticks, {in_rows} in the rows")
    numbers = [tick.index for tick in recorded.ticks]
    if numbers != list(range(len(numbers))):
        result.found(Fault.LOST, f"ticks are missing: {numbers}")


_FAILURES = (RequestStatus.ERROR, RequestStatus.TIMEOUT, RequestStatus.TRUNCATED)


def _check_killed(recorded: Recorded, ledger: Ledger, result: Result) -> None:
    """All that was settled well before the last tick is there, and nothing that never was."""
    ok = recorded.ok
    answered = ledger.of(What.ANSWERED, What.ODD)
    if len(ok) > len(answered) + ledger.count(What.GONE) + ledger.unsettled_ends:
        result.found(Fault.INVENTED, f"{len(ok)} requests ok, and the server answered {len(answered)}")
    lag = max(
        (tick.client.loop_lag.percentile(100) for tick in recorded.ticks if tick.client.loop_lag.count), default=0.0
    )
    settled = [entry for entry in ledger.of(What.ANSWERED) if entry.at < recorded.until - SETTLED - 2.0 * lag]
    if len(settled) > len(recorded.requests):
        result.found(
            Fault.LOST, f"{len(settled)} answered well before the last tick, {len(recorded.requests)} recorded"
        )


def _check_ended(recorded: Recorded, ledger: Ledger, ended: Ended, result: Result, *, whole: bool) -> None:
    end = recorded.end
    assert end is not None
    if ended.code is not None and ended.code >= 0 and ended.code != end.exit_code:
        result.found(Fault.INVENTED, f"exit code {ended.code}, {end.exit_code} in the recording ({end.reason})")
    received, rows = ledger.count(What.RECEIVED), len(recorded.requests)
    ok = recorded.ok
    answered, odd = ledger.of(What.ANSWERED), ledger.count(What.ODD)
    unsettled = 0 if whole else ledger.unsettled_ends
    excused = 0 if whole else rows - len(ok)
    if received - ledger.count(What.NO_ANSWER) > rows:
        result.found(Fault.LOST, f"the server received {received} requests, {rows} are recorded")
    if not len(answered) - excused <= len(ok) <= len(answered) + odd + unsettled:
        words = f"{len(answered)} answered and {odd} odd, {len(ok)} of {rows} recorded as ok, {received} received"
        result.found(Fault.LOST if len(ok) < len(answered) else Fault.INVENTED, words)
    _check_tokens(ok, answered, result, exact=whole and not odd)
    _check_verdict(recorded, end, result)
    if ended.out.lstrip().startswith("{"):
        _check_json(json.loads(ended.out), len(ok), rows, result)


def _check_tokens(ok: Sequence[Row], answered: Sequence[Entry], result: Result, *, exact: bool) -> None:
    """As many tokens of each size of answer as were sent."""
    if exact and len(ok) == len(answered):
        ours, theirs = Counter(row.output_tokens for row in ok), Counter(entry.tokens for entry in answered)
        if ours != theirs:
            result.found(Fault.INVENTED, f"output tokens {ours}, and the server sent {theirs}")


def _check_verdict(recorded: Recorded, end: RunEnd, result: Result) -> None:
    failed = sum(row.status in _FAILURES for row in recorded.requests)
    if end.exit_code == 0 and failed > max(1.0, 0.01 * len(recorded.requests)):
        result.found(Fault.INVENTED, f"exit code 0 with {failed} of {len(recorded.requests)} requests failed")


def _check_json(summary: Mapping[str, Any], ok: int, rows: int, result: Result) -> None:
    reported = (summary.get("completed"), summary.get("num_prompts"))
    if reported not in ((ok, rows), (None, None)) and summary.get("completed") != ok:
        result.found(Fault.INVENTED, f"--json says {reported} completed and sent, the recording {ok} and {rows}")
