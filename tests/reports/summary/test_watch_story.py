"""The story of a watch has each limit in its part of the time, once, with the figures of that time."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest

from servetop.cli.main import main
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.summary.watch_story import WatchStory, watch_story
from servetop.reports.summary.watch_summary import watch_summary
from tests.recorded_watches import failing_ticks, watch_of_one, watch_of_three


def story_of(path: Path, since: str | None = None, until: str | None = None) -> WatchStory:
    with contextlib.closing(RecordingReader.open(path)) as reader:
        return watch_story(reader, since=since, until=until)


def test_the_whole_story_has_the_limits_of_the_summary(tmp_path: Path) -> None:
    path = watch_of_one(tmp_path / "one.servetop")
    found = story_of(path)
    with contextlib.closing(RecordingReader.open(path)) as reader:
        watched = watch_summary(reader).watched
    assert watched is not None
    (limit,) = watched.limits
    (line,) = found.lines
    assert line.at == limit.onset
    assert line.text.startswith(f"{limit.name} for 0:20; up to 30 waiting")
    assert found.headline == f"{limit.name} for 0:20 of 1:00"


@pytest.mark.parametrize(
    ("since", "until", "text"),
    [("30s", None, "for 0:10, from before"), (None, "30s", "for 0:10;"), ("35s", "25s", "for 0:10")],
)
def test_an_overload_counts_as_far_as_it_lies_in_the_window(
    since: str | None, until: str | None, text: str, tmp_path: Path
) -> None:
    found = story_of(watch_of_one(tmp_path / "one.servetop"), since, until)
    assert text in found.lines[0].text
    assert "for 0:10" in found.headline


def test_failed_requests_are_in_story_and_summary_although_nothing_waits(tmp_path: Path) -> None:
    path = watch_of_one(tmp_path / "one.servetop", failing_ticks(2.0))
    (line,) = story_of(path).lines
    assert line.at == pytest.approx(21, abs=1)
    assert line.text.startswith("failing for 0:")
    assert "; 40 failed requests, KV up to 20.0 %" in line.text
    with contextlib.closing(RecordingReader.open(path)) as reader:
        summary = watch_summary(reader)
    assert summary.headline.startswith("failing for 0:")
    assert summary.watched is not None
    assert [(each.name, each.onset) for each in summary.watched.limits] == [("failing", line.at)]
    assert story_of(path, "15s").headline == "no limit was reached in 0:15"


def test_a_quiet_part_is_said_to_be_one(tmp_path: Path) -> None:
    found = story_of(watch_of_one(tmp_path / "one.servetop"), "15s")
    assert (found.headline, found.lines) == ("no limit was reached in 0:15", ())


def test_of_several_servers_each_line_names_its_own(tmp_path: Path) -> None:
    path = watch_of_three(tmp_path / "three.servetop")
    found = story_of(path)
    named = {line.server for line in found.lines if line.server is not None}
    assert "gpu0" in named
    assert found.headline.startswith("gpu0: ")
    assert [line.at for line in found.lines] == sorted(line.at for line in found.lines)
    assert any(line.server is None and "gpu1" in line.text for line in found.lines)


def test_it_is_printed_as_text_markdown_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(watch_of_three(tmp_path / "three.servetop"))
    printed = []
    for words in ([], ["--markdown"], ["--json"]):
        assert main(["summary", path, "--story", *words]) == 0
        printed.append(capsys.readouterr().out)
    found = story_of(Path(path))
    text, markdown, data = printed
    assert text.splitlines()[0] == f"{found.since} to {found.until}: {found.headline}"
    assert len(text.splitlines()) == 1 + len(found.lines)
    assert markdown.startswith("**gpu0: ")
    assert [line["text"] for line in json.loads(data)["lines"]] == [line.text for line in found.lines]
