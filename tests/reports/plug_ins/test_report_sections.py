"""Sections of plug-ins are in the report, cannot change its page, and a broken one hides no other."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from servetop.cli.main import main
from tests.plug_in_package import install


class Tags(HTMLParser):
    """Collects each tag with each of its attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[tuple[str, str]] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {(tag, ""), *((tag, name) for name, _ in attrs)}


def tags_and_attributes(page: str) -> set[tuple[str, str]]:
    parser = Tags()
    parser.feed(page)
    return parser.found


HEAD = """
import math
from servetop.api.plug_ins import *
EVIL = '</script><script>alert(1)</script><img src=x onerror=alert(1)>" onload="x\\x1b[31m'
"""


@pytest.fixture
def report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[str, str]]:
    """Writes the report of the sample with sections by name; returns the page and what is said."""

    def written(**sections: str) -> tuple[str, str]:
        points = {name: f"acme_sections:{name}" for name in sections}
        text = HEAD + "".join(f"{name} = {expression}\n" for name, expression in sections.items())
        install(tmp_path / "site", monkeypatch, {"servetop.report_sections": points}, {"acme_sections": text})
        assert main(["report", "sample", "-o", str(tmp_path / "page.html")]) == 0
        return (tmp_path / "page.html").read_text(encoding="utf-8"), capsys.readouterr().err

    return written


def test_texts_tables_and_charts_are_drawn(report: Callable[..., tuple[str, str]]) -> None:
    page, said = report(
        Mine='ReportSection(title="Mine", parts=lambda run: ["One.", '
        'SectionTable(columns=("a", "b"), rows=[("x", 1234567), ("y", None)], caption="Two"), '
        'SectionChart(lines={"rising": ([0, 1, 2], [1.0, math.nan, 3.0])}, y_unit="ms", caption="Three")])'
    )
    section = page[page.index("<section><h2>Mine</h2>") :]
    section = section[: section.index("</section>")]
    assert said == ""
    assert "<p>One.</p>" in section
    assert "<td>1,234,567</td>" in section
    assert "<figcaption>Three</figcaption>" in section
    assert ">rising (ms)</text>" in section
    assert len(re.findall(r'<path d="M[\d. ]+h0\.1"', section)) == 2  # a point on each side of the gap


def test_hostile_texts_stay_texts(report: Callable[..., tuple[str, str]]) -> None:
    plain, _ = report()
    page, _ = report(
        Evil="ReportSection(title=EVIL, parts=lambda run: [EVIL, SectionTable(columns=(EVIL,), rows=[(EVIL,)], "
        'caption=EVIL), SectionChart(lines={EVIL: ([0], [1])}, x_unit=EVIL, y_unit=EVIL, caption=EVIL), "<b>"])'
    )
    for tag in ("<script", "<img", "<b>", "<style"):
        assert page.count(tag) == plain.count(tag)
    assert tags_and_attributes(page) == tags_and_attributes(plain) | {("figure", ""), ("figcaption", "")} | {
        pair for pair in tags_and_attributes(page) if pair[0] in ("svg", "path", "text")
    }
    assert [pair for pair in tags_and_attributes(page) if pair[1].startswith(("on", "href", "src", "style"))] == []
    assert "\x1b" not in page
    assert re.findall(r'content="default-src [^"]+"', page) == re.findall(r'content="default-src [^"]+"', plain)


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("7", "is int: it must be a ReportSection of servetop.api.plug_ins"),
        ('ReportSection(title="A", parts=lambda run: [{}])', "parts yielded dict: texts, tables and charts are"),
        ('ReportSection(title="A", parts=lambda run: 1 / 0)', "parts failed: ZeroDivisionError: division by zero"),
        (
            'ReportSection(title="A", parts=lambda run: [SectionTable(columns=("a", "b"), rows=[(1,)])])',
            "a table failed: ValueError: each row needs a value for each column",
        ),
        (
            'ReportSection(title="A", parts=lambda run: [SectionChart(lines={"l": ([1], [])})])',
            "a chart failed: ValueError: line l: x and y need one length",
        ),
        (
            'ReportSection(title="A", parts=lambda run: [SectionChart(lines={"l": (["a"], ["b"])})])',
            "a chart failed: ValueError: could not convert string to float",
        ),
    ],
)
def test_a_broken_section_says_so_and_hides_no_other(
    expression: str, error: str, report: Callable[..., tuple[str, str]]
) -> None:
    page, said = report(Broken=expression, Mine='ReportSection(title="Mine", parts=lambda run: ["All is well."])')
    assert said.startswith("servetop: report section 'Broken' of servetop-acme 1.0 (acme_sections:Broken)")
    assert error in said
    assert said.count("\n") == 1
    assert "Left out: report section &#x27;Broken&#x27; of servetop-acme 1.0" in page
    assert "<p>All is well.</p>" in page


def test_a_section_without_parts_is_left_out(report: Callable[..., tuple[str, str]]) -> None:
    page, said = report(Mine='ReportSection(title="Nothing here", parts=lambda run: [])')
    assert ("Nothing here" in page, said) == (False, "")


def test_a_section_is_bounded_and_says_what_is_left_out(report: Callable[..., tuple[str, str]]) -> None:
    page, _ = report(
        Long='ReportSection(title="Long", parts=lambda run: iter(lambda: "again", None))',
        Wide='ReportSection(title="Wide", parts=lambda run: [SectionTable(columns=("a",), rows=[(1,)] * 1234), '
        'SectionChart(lines={f"line {n}": (range(5000), range(5000)) for n in range(20)})])',
    )
    assert page.count("<p>again</p>") == 50
    assert "a section has up to 50 parts" in page
    assert "1,034 more rows are left out." in page
    assert "8 more lines are left out." in page
