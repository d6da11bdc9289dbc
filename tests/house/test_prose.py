"""The worst patterns of odd English are refused in docstrings, comments and texts of the code."""

from __future__ import annotations

import ast
import functools
import io
import re
import tokenize
from collections.abc import Iterator

import pytest

from tests.house.source_tree import TOP, Module, modules

ODD = {
    "told": r"\b(?:is|are|was|were|be|been|not) told\b|\btold (?:by|of|to|in|so)\b",
    "a program that tells or says": r"\b(?:tells|says) (?:of|nothing|how|whether|its|it)\b",
    "is no …": (
        r"(?<!there )(?<!There )\b(?:is|are|was|were) no "
        r"(?!(?:longer|more|less|fewer|such|one|way|need|room|difference|data)\b)[a-z]+(?: [a-z]+)?[.:,;\"']"
    ),
    "so many": r"\bso (?:many|much|long)\b(?! (?:that|as)\b)",
    "goes on": r"\b(?:goes|went|going) on\b",
    "to put aside": r"\bput(?:s|ting)? aside\b",
    "a dear call": r"\bdear(?:er|est)?\b",
    "words of a program": r"\b(?:its|his|own|their) (?:own )?words\b",
    "to hear of": r"\bhear(?:s|d)? of\b",
    "the wire": r"\b(?:the|a|own|each|every|whose|engine's) wires?\b",
    "at a stretch": r"\bat a stretch\b",
    "begun": r"\bbegun\b",
    "a person where a program is meant": r"\b(?:[Ww]hoever|[Nn]obody|[Ss]omebody|obeys?|obeyed)\b",
    "anew": r"\banew\b",
    "an inverted clause": r"\b(?:there is but|nor is there|as many as are)\b",
    "See X.": r"^See [A-Z]\w+(?:\.\w+)?[.;]",
    "Called when": r"^Called when\b",
}
"""Pattern by what is wrong with it."""
ALLOWED: frozenset[str] = frozenset()
"""Texts in which a pattern stands for good reason."""
_ODD_NAMES = frozenset({"told", "asked", "said", "heard", "obeyed", "wish", "leash", "crowd", "ledger"})
"""Names of functions, parameters and variables that speak of programs as of people."""
_FRAGMENT = re.compile(r"^(?:Of|And|Or|As|By|In|To|For|Those|These|That of|Those of|What of)\b[^.]{0,40}\.$")
"""A first line that needs the line above it: "Of the sum.", "By mouse."."""


def _docstrings(module: Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "lineno", 1), text


def _texts(module: Module) -> Iterator[tuple[int, str]]:
    """Comments and strings with blanks in them, with their lines."""
    for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# ")
        elif token.type == tokenize.STRING and " " in token.string:
            yield token.start[0], token.string.strip("rbfRBF\"'")


def _names(module: Module) -> Iterator[tuple[int, str]]:
    """The names that a module defines, with their lines."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id


@functools.cache
def _texts_of_all() -> tuple[tuple[str, str], ...]:
    """The place and the text, on one line, of every comment and string."""
    return tuple(
        (f"{module.path.relative_to(TOP)}:{line}", " ".join(text.split()))
        for module in modules()
        for line, text in _texts(module)
    )


def _odd(text: str) -> list[str]:
    return [name for name, pattern in ODD.items() if re.search(pattern, text) and text not in ALLOWED]


@pytest.mark.parametrize("name", ODD)
def test_no_text_of_the_code_has_an_odd_pattern(name: str) -> None:
    odd = re.compile(ODD[name])
    assert [
        f"{place}: {text[:100]}" for place, text in _texts_of_all() if odd.search(text) and text not in ALLOWED
    ] == []


def test_the_first_line_of_a_docstring_stands_alone() -> None:
    fragments = [
        f"{module.path.relative_to(TOP)}:{line}: {first}"
        for module in modules()
        for line, text in _docstrings(module)
        if _FRAGMENT.match(first := text.splitlines()[0])
    ]
    assert fragments == []


def test_no_name_speaks_of_a_program_as_of_a_person() -> None:
    found = [
        f"{module.path.relative_to(TOP)}:{line}: {name}"
        for module in modules()
        for line, name in _names(module)
        if _ODD_NAMES & set(name.lower().split("_"))
    ]
    assert found == []


@pytest.mark.parametrize(
    "text",
    ["Of the sum.", "By mouse.", "And ends with.", "As given.", "Those of one stage."],
)
def test_a_fragment_is_recognised(text: str) -> None:
    assert _FRAGMENT.match(text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("70000 is no port: give one", "is no …"),
        ("so many requests", "so many"),
        ("a process is told to end", "told"),
        ("The run goes on.", "goes on"),
        ("See PromptSource.", "See X."),
    ],
)
def test_an_odd_text_is_recognised(text: str, name: str) -> None:
    assert name in _odd(text)


@pytest.mark.parametrize("text", ["There is no longer a limit.", "as long as it lasts", "so long as nothing fails"])
def test_plain_english_is_not_refused(text: str) -> None:
    assert _odd(text) == []
