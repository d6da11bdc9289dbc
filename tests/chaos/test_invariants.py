"""The fault injector's own checks find what they are there to find."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from servetop.core.events import RequestStatus
from tests.chaos.case import Case, Fault, Result
from tests.chaos.invariants import Harm, Recorded, check_recording, check_words, read
from tests.chaos.ledger import LedgerWriter, What
from tests.chaos.mutations import GOLDEN
from tests.chaos.place import Ended, Place


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
