"""What differs between a peer's reading and the right one, and the explanations that the corpus has for it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.corpus.corpus import Case
from tests.corpus.peers.readings import PeerReading

EXPLANATIONS = Path(__file__).parent / "differences"
"""One file for each peer, with the kinds of its differences (../README.md)."""
RESPONSE_FIELDS = ("ok", "words", "content", "reasoning", "output_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One value that a peer reads otherwise."""

    case: str
    field: str
    found: object
    right: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of difference of a peer, with the files where it shows."""

    name: str
    corpus: str
    fields: tuple[str, ...]
    reads: str
    right: str
    why: str
    cases: tuple[str, ...]

    def explains(self, difference: Difference) -> bool:
        """Whether the difference is of this kind."""
        return difference.field in self.fields and difference.case in self.cases


def load_kinds(peer: str, corpus: str | None = None) -> tuple[Kind, ...]:
    """Return the kinds of differences that are explained for a peer, of one corpus or of all."""
    path = EXPLANATIONS / f"{peer}.toml"
    if not path.exists():
        return ()
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    kinds = [_kind(name, entry) for name, entry in table.items()]
    return tuple(kind for kind in kinds if corpus in (None, kind.corpus))


def _kind(name: str, entry: dict[str, object]) -> Kind:
    given = {"corpus": "responses", "name": name} | entry
    for key in ("fields", "cases"):
        given[key] = tuple(entry[key])  # type: ignore[arg-type]  # a list
    return Kind(**given)  # type: ignore[arg-type]  # the unit test checks the files


def response_differences(case: Case, reading: PeerReading) -> Iterator[Difference]:
    """Yield what a peer reads otherwise; what it does not say is not compared, nor is the text of a failure."""
    if reading.skipped:
        return
    for field, found, right in _compared(case, reading):
        if found != right:
            yield Difference(case=case.name, field=field, found=found, right=right)


def _compared(case: Case, reading: PeerReading) -> Iterator[tuple[str, object, object]]:
    right_ok = case.outcome == "ok"
    found_words = "a completion" if reading.ok else reading.error
    if reading.ok != right_ok:
        yield "ok", found_words, case.outcome
    elif not right_ok:
        if _servers_words(case) not in reading.error:
            yield "words", reading.error, case.reason
    else:
        for field, found, right in (
            ("content", reading.content, case.content),
            ("reasoning", reading.reasoning, case.reasoning),
            ("output_tokens", reading.output_tokens, case.output_tokens),
        ):
            if found is not None:
                yield field, found, right


def _servers_words(case: Case) -> str:
    """The part of the error that is the server's; "" where the words are those of servetop."""
    return case.reason if case.outcome == "error" and case.reason.encode() in case.body else ""


def unexplained(differences: Iterable[Difference], kinds: Iterable[Kind]) -> list[Difference]:
    """Return the differences that are of no kind."""
    known = list(kinds)
    return [each for each in differences if not any(kind.explains(each) for kind in known)]


def unneeded(differences: Iterable[Difference], kinds: Iterable[Kind]) -> list[tuple[Kind, str]]:
    """Return the kinds with those of their files that do not differ so."""
    found = list(differences)
    return [
        (kind, case)
        for kind in kinds
        for case in kind.cases
        if not any(kind.explains(each) and each.case == case for each in found)
    ]
