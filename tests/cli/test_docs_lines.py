"""Every command line of the docs is executed by a test, or is listed with the reason why it cannot be executed here."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.cli.docs_lines import EXECUTED, NOT_HERE, OWN_TESTS, documented, kind_of, lines_of
from tests.docs.pages import name_of
from tests.house.source_tree import TOP

LINES = {line for _, line in documented()}


def test_a_line_is_executed_or_has_a_reason() -> None:
    """A new line of the docs that fails here needs a kind, a test of its own, or a reason in NOT_HERE."""
    listed = NOT_HERE.keys() | OWN_TESTS.keys()
    neither = {f"{name_of(page)}: servetop {line}" for page, line in documented() if not kind_of(line)}
    assert neither - {f"{name_of(page)}: servetop {line}" for page, line in documented() if line in listed} == set()


def test_what_is_listed_is_in_the_docs() -> None:
    assert (NOT_HERE.keys() | OWN_TESTS.keys()) - LINES == set()
    assert NOT_HERE.keys() & OWN_TESTS.keys() == set()


def test_the_tests_that_execute_lines_exist() -> None:
    named = {*EXECUTED.values(), *OWN_TESTS.values()}
    assert {path for path in named if not (TOP / path).is_file()} == set()


@pytest.mark.parametrize("kind", EXECUTED)
def test_the_test_of_a_kind_executes_all_of_its_lines(kind: str) -> None:
    text = (TOP / EXECUTED[kind]).read_text(encoding="utf-8")
    assert f"lines_of({kind.upper()})" in text
    assert len([line for lines in lines_of(kind).values() for line in lines]) >= 10


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("report latest", "files"),
        ("watch http://gpu9:8000 --new", "servers"),
        ("--request-rate 3 --ramp 1:2s", "runs"),
        ("--engine newest --model m", None),
        ("--engine newest --model m -- --flag", None),
        ("unknown-command", None),
    ],
)
def test_a_line_that_names_only_an_engine_or_an_unknown_command_has_no_kind(line: str, kind: str | None) -> None:
    assert kind_of(line) == kind


def test_most_lines_are_executed() -> None:
    counts = Counter(kind_of(line) or ("listed" if line in NOT_HERE else "own") for line in LINES)
    assert counts["listed"] * 5 < counts.total(), counts
