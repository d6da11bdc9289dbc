"""The report of `servetop check` as JUnit XML: one test case for each item.

What cannot be decided is an `error`, so that it is seen; what does not apply or does not decide is `skipped`.
Form: https://github.com/testmoapp/junitxml, which GitLab, Jenkins and GitHub's reporters read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from servetop.analysis.checks.check_outcome import CheckOutcome
from servetop.reports.check.check_report import CheckItem, CheckReport, ItemKind

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not allow, even escaped."""


def junit_xml(report: CheckReport) -> str:
    """Return the document."""
    suites = [(kind, report.of_kind(kind)) for kind in ItemKind if report.of_kind(kind)]
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f'<testsuites name="servetop check" {_counts(report.shown)}>']
    for kind, items in suites:
        lines.append(f"  <testsuite name={_attribute(f'servetop.{kind}')} {_counts(items)}>")
        lines += [line for item in items for line in _case(item)]
        lines.append("  </testsuite>")
    return "\n".join([*lines, "</testsuites>", ""])


def _case(item: CheckItem) -> list[str]:
    start = f'    <testcase classname={_attribute(f"servetop.{item.kind}")} name={_attribute(item.title)} time="0"'
    element = _element(item)
    if not element:
        return [f"{start}>", f"      <system-out>{_text(item.text)}</system-out>", "    </testcase>"]
    kind = f" type={_attribute(item.word)}" if element != "skipped" else ""
    message = f"{item.word}: {item.text}"
    body = "" if element == "skipped" else _text(item.text)
    return [f"{start}>", f"      <{element} message={_attribute(message)}{kind}>{body}</{element}>", "    </testcase>"]


def _element(item: CheckItem) -> str:
    """Return the element of an outcome; empty for a test case that passes."""
    if item.outcome is CheckOutcome.KEPT:
        return ""
    if item.outcome is CheckOutcome.NOT_APPLICABLE or not item.decides:
        return "skipped"
    return "failure" if item.outcome is CheckOutcome.BROKEN else "error"


def _counts(items: Sequence[CheckItem]) -> str:
    elements = [_element(item) for item in items]
    counts = {name: elements.count(element) for name, element in _COUNTED.items()}
    return " ".join([f'tests="{len(items)}"', *(f'{name}="{count}"' for name, count in counts.items()), 'time="0"'])


_COUNTED = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def _text(text: str) -> str:
    return escape(_NOT_XML.sub("�", text))


def _attribute(text: str) -> str:
    return quoteattr(_NOT_XML.sub("�", text), {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})
