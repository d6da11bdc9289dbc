"""The fault injector's own checks detect the faults that they are for."""

from __future__ import annotations

import json
import random
import shutil
import signal
from pathlib import Path

import pytest

from servetop.core.events import RequestStatus
from servetop.recordings.verify.verdict import VerifyVerdict
from servetop.recordings.verify.verify import verify
from tests.chaos.case import Case, Fault, Finding, Result
from tests.chaos.invariants import Harm, Recorded, check_recording, check_words, read
from tests.chaos.ledger import LedgerWriter, What
from tests.chaos.mutations import BASES, GOLDEN, base
from tests.chaos.place import Ended, Place
from tests.chaos.recordings import Before, CommandOutput, misjudged
from tests.chaos.report import Figures


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(Case("test", 0, 0), tmp_path)
    shutil.copyfile(GOLDEN / "dies.servetop", made.recording)
    return made


@pytest.fixture
def recorded(place: Place) -> Recorded:
    found = read(place.recording)
    assert found is not None
    return found


def count(place: Place, recorded: Recorded, *, answered_more: int = 0, received_more: int = 0) -> None:
    """Write down what a server would have counted of the recording, and a few more."""
    ledger = LedgerWriter(place.ledger_file)
    for number in range(len(recorded.requests) + received_more):
        ledger.write(What.RECEIVED, number)
    for number, row in enumerate(recorded.ok + recorded.ok[:1] * answered_more):
        ledger.write(What.ANSWERED, number, tokens=row.output_tokens)


def found_in(place: Place, ended: Ended, *, harm: Harm = Harm.ENDED) -> list[Fault]:
    result = Result()
    check_recording(place, ended, result, harm=harm)
    return [finding.fault for finding in result.findings]


def test_a_recording_that_says_what_the_server_counted_is_sound(place: Place, recorded: Recorded) -> None:
    count(place, recorded)
    assert found_in(place, Ended(3, "", "")) == []


def test_a_request_that_only_the_server_knows_is_lost(place: Place, recorded: Recorded) -> None:
    count(place, recorded, received_more=1)
    assert found_in(place, Ended(3, "", "")) == [Fault.LOST]


def test_a_success_that_the_server_never_saw_is_invented(place: Place, recorded: Recorded) -> None:
    ledger = LedgerWriter(place.ledger_file)
    for number in range(len(recorded.requests)):
        ledger.write(What.RECEIVED, number)
    assert found_in(place, Ended(3, "", "")) == [Fault.INVENTED]


def test_an_answer_that_ended_when_its_server_was_killed_is_not_invented(place: Place, recorded: Recorded) -> None:
    ledger = LedgerWriter(place.ledger_file)
    for number in range(len(recorded.requests)):
        ledger.write(What.RECEIVED, number)
    for number, row in enumerate(recorded.ok):
        ledger.write(What.ENDING, number)
        if number:
            ledger.write(What.ANSWERED, number, tokens=row.output_tokens)
    assert place.ledger.unsettled_ends == 1
    assert found_in(place, Ended(3, "", "")) == []
    assert found_in(place, Ended(3, "", ""), harm=Harm.NONE) != []


def test_another_server_does_not_settle_what_the_killed_one_left(place: Place) -> None:
    ledger = LedgerWriter(place.ledger_file)
    for what in (What.RECEIVED, What.ENDING, What.RECEIVED, What.ENDING, What.ANSWERED):
        ledger.write(what, 1)
    assert place.ledger.unsettled_ends == 1


def test_an_answer_of_another_length_is_invented(place: Place, recorded: Recorded) -> None:
    ledger = LedgerWriter(place.ledger_file)
    for number, row in enumerate(recorded.requests):
        ledger.write(What.RECEIVED, number)
        if row.status is RequestStatus.OK:
            ledger.write(What.ANSWERED, number, tokens=row.output_tokens + 1)
    assert found_in(place, Ended(3, "", ""), harm=Harm.NONE) == [Fault.INVENTED]


def test_another_exit_code_than_the_recordings_is_invented(place: Place, recorded: Recorded) -> None:
    count(place, recorded)
    assert found_in(place, Ended(0, "", "")) == [Fault.INVENTED]


def test_no_recording_and_exit_code_0_is_lost(place: Place) -> None:
    place.recording.unlink()
    assert found_in(place, Ended(0, "", "")) == [Fault.LOST]


@pytest.mark.parametrize(
    ("ended", "faults"),
    [
        (Ended(0, "fine\n", "0:01  engine is loading\n"), []),
        (Ended(1, "", "servetop: 3 of 9 requests failed\n"), []),
        (Ended(1, "", ""), [Fault.INVENTED]),
        (Ended(7, "", "servetop: it broke\n"), [Fault.INVENTED]),
        (Ended(0, "", "Traceback (most recent call last):\n"), [Fault.TRACEBACK]),
        (Ended(0, "a\x1b[2Jb", ""), [Fault.ESCAPE]),
    ],
)
def test_words_and_exit_codes(ended: Ended, faults: list[Fault]) -> None:
    result = Result()
    check_words(ended, result)
    assert [finding.fault for finding in result.findings] == faults


@pytest.mark.parametrize(("function", "faults"), [("<module>", []), ("main", [Fault.TRACEBACK])])
def test_an_interrupt_is_pythons_own_until_a_function_of_servetop_runs(function: str, faults: list[Fault]) -> None:
    runpy, entry = 'File "<frozen runpy>", line 8, in _run_code', 'File "/servetop/__main__.py", line 9, in '
    frames = f"  {runpy}\n  {entry}{function}\n"
    ended = Ended(-signal.SIGINT, "", f"Traceback (most recent call last):\n{frames}KeyboardInterrupt\n")
    result = Result()
    check_words(ended, result, signalled=True)
    assert [finding.fault for finding in result.findings] == faults


@pytest.mark.parametrize(("error", "found"), [("KeyboardInterrupt", False), ("ImportError: no module", True)])
def test_an_interrupt_before_python_has_its_modules_ends_it_with_1(error: str, found: bool) -> None:
    start = "Fatal Python error: init_import_site: Failed to import the site module\nTraceback (most recent call last):"
    ended = Ended(1, "", f'{start}\n  File "<frozen site>", line 616, in <module>\n{error}\n')
    result = Result()
    check_words(ended, result, signalled=True)
    assert (Fault.TRACEBACK in [finding.fault for finding in result.findings]) is found


@pytest.mark.parametrize(("of", "found"), [("_get_module_lock.<locals>.cb", False), ("FirstSender.__del__", True)])
def test_an_interrupt_that_import_ignored_is_pythons_own(of: str, found: bool) -> None:
    text = f"""Exception ignored in: <function {of} at 0x7fb6c9936ac0>
Traceback (most recent call last):
  File "<frozen importlib._bootstrap>", line 198, in cb
KeyboardInterrupt:\x20
0:00  engine is loading
"""
    result = Result()
    check_words(Ended(0, "", text), result, signalled=True)
    assert (Fault.TRACEBACK in [finding.fault for finding in result.findings]) is found


@pytest.mark.parametrize("number", range(20))
def test_recordings_are_sound_before_they_are_damaged(tmp_path: Path, number: int) -> None:
    file = tmp_path / "run.servetop"
    assert base(random.Random(number), file).startswith(BASES)
    assert verify(file).verdict is VerifyVerdict.SOUND


@pytest.mark.parametrize(
    ("ticks_now", "code", "verdict", "summary_code", "faults"),
    [
        (2, 0, "sound", 0, 0),
        (1, 0, "sound", 0, 1),
        (2, 0, "sound", 1, 1),
        (2, 0, "not sound", 0, 1),
        (2, 1, "not sound", 0, 1),
        (2, 2, "not a recording", 1, 1),
    ],
    ids=[
        "as it was", "a tick is lost", "summary fails", "another code", "nothing was altered", "its marks are there",
    ],
)  # fmt: skip
def test_a_verdict_that_does_not_hold_is_found(
    place: Place, ticks_now: int, code: int, verdict: str, summary_code: int, faults: int
) -> None:
    ticks = {0: (1, 1, 0, 5, 5), 1: (2, 2, 0, 9, 9)}
    before = Before(ticks, (place.recording.read_bytes(), b""), torn=True)
    output = CommandOutput(code, json.dumps([{"verdict": verdict, "checks": []}]), "")
    now = dict(list(ticks.items())[:ticks_now])
    found = misjudged(place.recording, before, now, verdict=output, summary=CommandOutput(summary_code, "{}", ""))
    assert [finding.fault for finding in found] == [Fault.INVENTED] * faults


def test_figures_say_seed_version_what_was_tried_and_what_was_found() -> None:
    figures = Figures(seed=7, cases=3)
    figures.add(Case("kill", 0, 7), Result(seconds=4.0))
    figures.add(
        Case("recording", 0, 7), Result(tried=25, findings=[Finding(Fault.HANG, "file 3:\n it hung")], seconds=9.0)
    )
    text = figures.text()
    assert "servetop 0" in text
    assert "seed 7" in text
    assert "1 of 3 cases still to come:" in text
    assert "Tried: 1 kills, 25 mutated recordings. Found: 0 lost, 0 invented, 0 traceback, 1 hang," in text
    assert "- `recording:0`, hang: file 3: it hung" in text
    figures.over = True
    assert "1 of 3 cases left out:" in figures.text()
