"""The page of statements and their evidence is the one that the declarations give."""

from pathlib import Path

from tests.docs.evidence_page import evidence_page

PAGE = Path(__file__).parents[2] / "docs/reference/evidence.md"


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == evidence_page(), "run `make evidence`"
