"""The JUnit document: its elements, counts and escapes."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from servetop.reports.check.check_report import CheckReport
from servetop.reports.check.junit import junit_xml
from tests.cli.check.reports import honesty, report

SUITES, SUITE, CASE = "testsuites", "testsuite", "testcase"
CHILDREN = {
    SUITES: {SUITE},
    SUITE: {CASE},
    CASE: {"failure", "error", "skipped", "system-out"},
    "failure": set(),
    "error": set(),
    "skipped": set(),
    "system-out": set(),
}
"""The elements of the common schema (windyroad's JUnit.xsd, testmo's description) that the document uses."""
REQUIRED = {
    SUITES: {"name", "tests", "failures", "errors", "time"},
    SUITE: {"name", "tests", "failures", "errors", "skipped", "time"},
    CASE: {"name", "classname", "time"},
    "failure": {"message", "type"},
    "error": {"message", "type"},
    "skipped": {"message"},
}


@pytest.mark.parametrize("report", [report(), honesty()], ids=["gates", "honesty"])
def test_the_document_has_the_shape_of_the_schema(report: CheckReport) -> None:
    root = ElementTree.fromstring(junit_xml(report).encode())
    assert root.tag == SUITES
    for element in root.iter():
        assert {child.tag for child in element} <= CHILDREN[element.tag]
        assert REQUIRED.get(element.tag, set()) <= set(element.attrib)
    for suite in (root, *root.iter(SUITE)):
        counts = [len(list(suite.iter(tag))) for tag in (CASE, "failure", "error", "skipped")]
        assert [int(suite.attrib[name]) for name in ("tests", "failures", "errors", "skipped")] == counts


def test_each_outcome_has_its_element() -> None:
    root = ElementTree.fromstring(junit_xml(report()).encode())
    elements = {case.attrib["name"]: [child.tag for child in case] for case in root.iter(CASE)}
    assert elements == {
        "output_throughput=2% at 8 req/s (stage 0)": ["system-out"],
        "p99_ttft_ms=10% at 8 req/s (stage 0)": ["failure"],
        "mean_tpot_ms=5% at 8 req/s (stage 0)": ["error"],
        "p99_ttft_ms<=500": ["failure"],
        "client-bound at 8 req/s (stage 0)": ["skipped"],
    }
    alone = ElementTree.fromstring(junit_xml(honesty()).encode())
    assert [next(iter(case)).tag for case in alone.iter(CASE)] == ["failure", "error", "system-out", "skipped"]


def test_hostile_texts_stay_texts() -> None:
    root = ElementTree.fromstring(junit_xml(report()).encode())
    (failure,) = [each for each in root.iter("failure") if "a<b>" in str(each.text)]
    assert failure.text == "a<b> & \"c\" 'd' | `e` *f* [g](h) 100% ::error::i\nj,k:l�[31m�"
    assert failure.attrib["message"] == f"not met: {failure.text}"
