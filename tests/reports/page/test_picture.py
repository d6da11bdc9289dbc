"""The picture of a run says what its page says, is drawn for every kind of run, and stays inert."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from servetop.cli.main import main
from servetop.run.search.result_page import recording_picture
from tests.hostile_recording import write_hostile_recording
from tests.recorded_watches import watch_of_one, watch_of_three

SVG = "{http://www.w3.org/2000/svg}"
RESULTS = Path(__file__).parents[2] / "corpus" / "results"
ATTACK = "]]></text><script>owned()</script><image href='http://x/y'/>\"'<!--\x1b]0;x\x07\u202e\ufffe"
INERT = {"svg", "g", "rect", "path", "text", "title"}


def drawn(text: str) -> ElementTree.Element:
    picture = ElementTree.fromstring(text)
    assert {each.tag.removeprefix(SVG) for each in picture.iter()} <= INERT
    names = {name for each in picture.iter() for name in each.attrib}
    assert not [name for name in names if name.startswith(("on", "style", "href")) or "}" in name]
    return picture


def texts(picture: ElementTree.Element) -> list[str]:
    return [each.text or "" for each in picture.iter(f"{SVG}text")]


def inside(picture: ElementTree.Element) -> bool:
    """Whether each chart lies within the picture."""
    width, height = (float(picture.attrib[name]) for name in ("width", "height"))
    for group in picture.iter(f"{SVG}g"):
        x, y = map(float, group.attrib["transform"].removeprefix("translate(").rstrip(")").split())
        (chart,) = group
        if x + float(chart.attrib["width"]) > width or y + float(chart.attrib["height"]) > height:
            return False
    return True


def test_the_verdict_the_trust_and_the_charts_of_the_sample_are_in_it() -> None:
    picture = drawn(recording_picture("sample"))
    title = picture.find(f"{SVG}title")
    assert title is not None
    assert (title.text or "").startswith("KV-bound from 0:49 at 14.2 req/s: 211 preemptions")
    found = texts(picture)
    assert " ".join(found[1:3]) == title.text
    assert any(each.startswith("trust ok: slip, loop lag") for each in found)
    for chart in ("Load: requests per second", "KV cache used", "Latency of each stage, in order"):
        assert chart in found
    assert inside(picture)


def test_lines_of_a_chart_differ_without_colour_and_episodes_are_shaded() -> None:
    picture = drawn(recording_picture("sample"))
    for chart in picture.iter(f"{SVG}g"):
        lines = [each for each in chart.iter(f"{SVG}path") if each.attrib.get("stroke-width") == "2"]
        assert len({each.attrib.get("stroke-dasharray") for each in lines}) == len(lines)
    load = next(iter(picture.iter(f"{SVG}g")))
    assert len(list(load.iter(f"{SVG}rect"))) == 1
    assert {"0:30", "1:00", "sent (req/s)"} <= {each.text for each in load.iter(f"{SVG}text")}


def test_stages_are_marked_by_whole_numbers() -> None:
    picture = drawn(recording_picture("sample"))
    (chart,) = list(picture.iter(f"{SVG}g"))[-1]
    axis = [each.text for each in chart.iter(f"{SVG}text") if each.attrib["text-anchor"] == "middle"]
    assert axis == ["1", "2", "3", "4"]


def test_a_watch_of_one_server_and_of_three_is_drawn(tmp_path: Path) -> None:
    for made in (watch_of_one(tmp_path / "one.servetop"), watch_of_three(tmp_path / "three.servetop")):
        picture = drawn(recording_picture(str(made)))
        assert "The load was that of others: every figure is the server's own." in texts(picture)
        assert len(list(picture.iter(f"{SVG}g"))) >= 2
        assert inside(picture)


def test_an_imported_run_is_drawn(tmp_path: Path) -> None:
    path = tmp_path / "imported.servetop"
    assert main(["import", str(RESULTS / "vllm-rate.json"), "-o", str(path)]) == 0
    assert any(each.startswith("trust unknown") for each in texts(drawn(recording_picture(str(path)))))


def test_text_from_strangers_stays_text(tmp_path: Path) -> None:
    path = tmp_path / "hostile.servetop"
    write_hostile_recording(path, ATTACK)
    text = recording_picture(str(path))
    assert "<script" not in text
    assert "\x1b" not in text
    assert any("owned()" in each for each in texts(drawn(text)))


def test_a_file_with_its_suffix_is_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "sample", "-o", str(tmp_path / "run.svg")]) == 0
    drawn((tmp_path / "run.svg").read_text(encoding="utf-8"))
    assert main(["report", "sample", "--format", "svg", "-o", str(tmp_path / "other")]) == 0
    assert (tmp_path / "other").read_bytes() == (tmp_path / "run.svg").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (
            ["sample", "sample:h200", "--format", "svg"],
            "a picture shows one recording: name one, or give --format html",
        ),
        (["sample", "--format", "svg", "--price", "2/h"], "--price has no effect on the picture of one recording"),
    ],
)
def test_what_a_picture_cannot_show_is_one_line(
    arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", *arguments]) == 2
    assert capsys.readouterr().err.startswith(f"servetop: {error}")
