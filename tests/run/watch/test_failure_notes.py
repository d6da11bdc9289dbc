"""Servers that cannot be watched: one note for all that fail alike, and the note of a single one as it is."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from servetop.core.events import Note, Severity
from servetop.core.interfaces.replica_change import ReplicaState
from servetop.recordings.read.reader import RecordingReader
from servetop.run.watch.failure_notes import HOLD, AttachFailure, FailureNotes
from servetop.run.watch.watch_loop import WatchLoop
from tests.run.watch.test_watch_loop import until, watch
from tests.run.watch.test_watched_fleet import changes_of, fleet_of, output_of, state_of
from tests.watched_server import watched_server


def refused(number: int, *, at: float = 1.0) -> AttachFailure:
    url = f"http://gpu{number}:8000"
    text = f"nothing answers at {url} (connection refused): is the server up? try: curl {url}/health"
    return AttachFailure(at=at, name=f"gpu{number}", url=url, text=text)


def locked(number: int) -> AttachFailure:
    url = f"http://gpu{number}:8000"
    text = f"{url} requires authentication (HTTP 401): give --api-key-env"
    return AttachFailure(at=1.5, name=f"gpu{number}", url=url, text=text)


def notes_of(*failures: AttachFailure, listed: int = 50) -> list[Note]:
    notes = FailureNotes()
    notes.add(failures)
    return notes.take(5.0, listed=listed)


def test_one_server_has_the_note_of_its_error() -> None:
    (note,) = notes_of(refused(7))
    assert note == Note(
        at=1.0, severity=Severity.WARNING, source="engine",
        text="gpu7: nothing answers at http://gpu7:8000 (connection refused): is the server up? "
        "try: curl http://gpu7:8000/health",
    )  # fmt: skip


def test_many_that_fail_alike_are_one_note_with_the_first_addresses() -> None:
    (note,) = notes_of(*map(refused, range(1, 49)))
    assert note.text == (
        "48 of 50 servers cannot be reached: nothing answers (connection refused) "
        "(http://gpu1:8000, http://gpu2:8000 and 46 more)"
    )
    assert (note.at, note.severity) == (1.0, Severity.WARNING)


def test_each_reason_is_a_note_of_its_own() -> None:
    found = notes_of(refused(1), locked(3), refused(2), locked(4), locked(14), listed=5)
    assert [each.text for each in found] == [
        "2 of 5 servers cannot be reached: nothing answers (connection refused) (http://gpu1:8000, http://gpu2:8000)",
        "3 of 5 servers cannot be watched: http://gpu3:8000 requires authentication (HTTP 401): give --api-key-env "
        "(http://gpu3:8000, http://gpu4:8000 and 1 more)",
    ]


def test_the_first_failure_waits_for_others_and_none_is_said_twice() -> None:
    notes = FailureNotes()
    assert notes.take(0.0, listed=3) == []
    notes.add([refused(1)])
    assert notes.take(1.0 + HOLD / 2, listed=3) == []
    notes.add([refused(2, at=1.0 + HOLD / 2)])
    (note,) = notes.take(1.0 + HOLD, listed=3)
    assert note.text.startswith("2 of 3 servers cannot be reached")
    assert notes.take(9.0, listed=3) == []
    notes.add([refused(3, at=9.0)])
    (note,) = notes.take(9.0, listed=3, last=True)
    assert note.text.startswith("gpu3: nothing answers")


def test_a_watch_folds_the_notes_and_keeps_the_reason_of_each_server(tmp_path: Path) -> None:
    path = tmp_path / "watch.servetop"

    async def look(_: WatchLoop, reader: RecordingReader) -> None:
        await until(lambda: output_of(reader, 0) == 500 and state_of(reader, 3) == ReplicaState.REFUSED)
        await until(lambda: state_of(reader, 1) == state_of(reader, 2) == ReplicaState.GONE)

    with watched_server() as one, watched_server() as other:
        other.pages = {"/": "hello"}
        urls = (one.url, "http://127.0.0.1:9", "http://127.0.0.1:13", other.url)
        assert watch(fleet_of(*urls), path, look).exit_code == 0
    with closing(RecordingReader.open(path)) as reader:
        warnings = [each.text for each in reader.notes() if each.severity is Severity.WARNING]
        reasons = [changes_of(reader, number)[-1].reason for number in (1, 2)]
    assert sum("cannot be reached" in text for text in warnings) == 1
    (folded,) = (text for text in warnings if "cannot be reached" in text)
    assert folded.startswith("2 of 4 servers cannot be reached: nothing answers (")
    assert folded.endswith("(http://127.0.0.1:9, http://127.0.0.1:13)")
    (single,) = (text for text in warnings if "lists no models" in text)
    assert single.startswith("d: ")
    assert [url in reason for url, reason in zip(urls[1:3], reasons, strict=True)] == [True, True]
