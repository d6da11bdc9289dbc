"""Files of older minor versions, which lack newer columns."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from servetop.analysis.summary.summary_json import summary_json
from servetop.core.errors import RecordingError
from servetop.core.events import Note, RequestRecord, RunEnd, Severity
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.interfaces.series_scrape import SeriesScrape, pack_numbers
from servetop.core.tick import Tick
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.resume import resume_recording
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.reports.summary.summary import run_summary
from tests.recordings.rows import change

MakeRequest = Callable[..., RequestRecord]
MakeTick = Callable[..., Tick]
INTERRUPTED = RunEnd(at=9.0, exit_code=130, reason="interrupted")


@pytest.fixture
def older(tmp_path: Path, header: RunHeader, make_request: MakeRequest) -> Path:
    """An interrupted recording of format 1.1."""
    path = tmp_path / "older.servetop"
    recorder = Recorder.create(path, header)
    recorder.commit(TickTransaction(requests=[make_request(1, 0.0)]))
    recorder.close(INTERRUPTED)
    older = [f"ALTER TABLE request DROP COLUMN {name}" for name in ("first_output_at", "reasoning_tokens")]
    change(path, *older, "PRAGMA user_version = 1001")
    return path


def test_an_older_file_is_summarised_without_missing_columns(older: Path) -> None:
    with contextlib.closing(RecordingReader.open(older)) as reader:
        summary = summary_json(run_summary(reader))
    assert (summary["completed"], summary["mean_ttft_ms"]) == (1, pytest.approx(100.0))
    assert "mean_ttfot_ms" not in summary


def test_a_file_without_a_manifest_has_an_empty_one_and_gets_one_when_it_is_resumed(older: Path) -> None:
    change(older, "ALTER TABLE run DROP COLUMN manifest")
    with contextlib.closing(RecordingReader.open(older)) as reader:
        assert reader.header.manifest == {}
    recorder, _ = resume_recording(older)
    recorder.set_manifest({"command_line": ["servetop"]})
    recorder.close(INTERRUPTED)
    with contextlib.closing(RecordingReader.open(older)) as reader:
        assert reader.header.manifest == {"command_line": ["servetop"]}


def test_a_note_of_an_older_file_says_what_random_prompts_consist_of(older: Path) -> None:
    recorder, _ = resume_recording(older)
    text = "random prompts consist of ordinary tokens of the model"
    recorder.commit(TickTransaction(notes=[Note(at=9.5, severity=Severity.INFO, source="load", text=text)]))
    recorder.close(INTERRUPTED)
    columns = [f"ALTER TABLE note DROP COLUMN {name}" for name in ("fact", "subject", "count")]
    change(older, "ALTER TABLE run DROP COLUMN random_tokens", *columns)
    with contextlib.closing(RecordingReader.open(older)) as reader:
        assert summary_json(run_summary(reader))["dataset"]["random_tokens"] == "ordinary"


def test_ticks_of_an_older_file_say_nothing_about_objectives(recorder: Recorder, make_tick: MakeTick) -> None:
    recorder.commit(TickTransaction(tick=make_tick(0, ok=4, good=3, good_due=2)))
    recorder.close(INTERRUPTED)
    with contextlib.closing(RecordingReader.open(recorder.path)) as reader:
        assert [(each.client.good, each.client.good_due) for each in reader.ticks()] == [(3, 2)]
    dropped = [f"ALTER TABLE tick DROP COLUMN {name}" for name in ("checksum", "good", "good_due")]
    change(recorder.path, *dropped, "PRAGMA user_version = 1005")
    with contextlib.closing(RecordingReader.open(recorder.path)) as reader:
        assert [(each.client.ok, each.client.good, each.client.judged) for each in reader.ticks()] == [(4, None, None)]


def test_an_older_file_can_be_resumed(older: Path, make_request: MakeRequest) -> None:
    recorder, _ = resume_recording(older)
    recorder.commit(TickTransaction(requests=[make_request(2, 1.0, reasoning_tokens=1, first_output_at=1.2)]))
    recorder.close(INTERRUPTED)
    with contextlib.closing(RecordingReader.open(older)) as reader:
        assert summary_json(run_summary(reader))["total_reasoning_tokens"] == 1


def test_a_file_without_the_series_of_the_engine_page_says_so_and_gets_them_when_it_is_resumed(older: Path) -> None:
    change(older, "DROP TABLE engine_series")
    with contextlib.closing(RecordingReader.open(older)) as reader:
        assert (reader.header.has_engine_series, reader.poll().engine_series) == (False, [])
    recorder, _ = resume_recording(older)
    series = SeriesScrape(at=9.5, names="vllm:request_success_total", numbers=pack_numbers([3.0]))
    recorder.commit(TickTransaction(engine_series=[series]))
    recorder.close(INTERRUPTED)
    with contextlib.closing(RecordingReader.open(older)) as reader:
        assert (reader.header.has_engine_series, reader.engine_series()) == (True, [series])


def test_a_file_with_ticks_of_another_length_is_refused(recorder: Recorder) -> None:
    recorder.close(INTERRUPTED)
    change(recorder.path, "UPDATE run SET (tick_seconds) = 0.5")
    with pytest.raises(RecordingError, match=r"ticks of 0\.5 s, and this version .* reads ticks of 0\.25 s"):
        RecordingReader.open(recorder.path)


def test_an_older_file_was_not_predicted(recorder: Recorder) -> None:
    recorder.close(INTERRUPTED)
    change(recorder.path, "ALTER TABLE run DROP COLUMN predicted", "PRAGMA user_version = 1013")
    with contextlib.closing(RecordingReader.open(recorder.path)) as reader:
        assert reader.header.predicted is False


def test_an_older_file_has_ticks_of_a_quarter_of_a_second(recorder: Recorder, make_tick: MakeTick) -> None:
    recorder.commit(TickTransaction(tick=make_tick(3)))
    recorder.close(INTERRUPTED)
    change(recorder.path, "ALTER TABLE run DROP COLUMN tick_seconds", "PRAGMA user_version = 1012")
    with contextlib.closing(RecordingReader.open(recorder.path)) as reader:
        assert [tick.end for tick in reader.ticks()] == [1.0]
