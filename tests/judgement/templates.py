"""The texts that the judgement's modules can print, read from their source, with sample values in their places."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from servetop.analysis import diagnosis, story, trust

_VERDICTS = ("trust", "other_clients", "cache_check")
"""Modules of `trust` whose phrases stand on the verdict line."""
_LABELS = ("clauses", "live_clauses", "episode", "observation", "log_severity", "overload_intervals", "rate_factors")
"""Modules whose texts are no sentences about a run: names of episodes, observations and classes, examples."""
_OF_WATCHES = ("watched_verdict",)
"""Modules of the verdict of a watch, which no simulated run has."""
_NUMBERS = {"%": 0.12, "d": 12, "f": 12.0, "g": 12.0}
CALLS: dict[str, tuple[str, ...]] = {
    "seconds": ("98 ms", "3.4 s"), "clock": ("1:05",), "percent": ("97.3 %",), "_named": ("replica 2",),
    "rate_number": ("12", "0.52", "1,250"), "whole_percent": ("12%",),
    "_span": ("5", "5 to 8"), "objectives_text": ("TTFT ≤ 500 ms",),
    "shortened": ("CUDA out of memory",), "sanitize_line": ("http://sim-1",), "in_flight_text": ("12 in flight",),
    "done_text": ("done 5.0 req/s", "done 5.0 of 6.0 req/s"),
}  # fmt: skip
"""What the functions return that a text calls."""
NAMES: dict[str, tuple[str, ...]] = {
    "rate": ("", " at 5.0 req/s"), "after": ("", ", 12 s after the load fell"), "onset": ("", " from 1:05"),
    "least": ("", "at least "), "lasted": ("", "no queue that lasted, "), "seen": ("", " at the scrapes"),
    "scraped": ("", " at the scrapes"),
    "since": ("from", "by"), "calm_story:since": ("", " after the cold start"), "story:since": ("", " after it"),
    "overload_story:seen": ("", " seen"),
    "place": ("", " at replica 2 of 3", " after a cold start"), "size": ("16",), "limit.value": ("KV-bound",),
    "most": ("12",), "high": ("15",),
    "size.fits": ("16",), "limit": ("16",), "more": ("", ", …"), "relation": ("≈", "≥"), "low": ("12",),
    "verdict.cause.value": ("KV-bound", "unclear"), "RunCause.UNCLEAR.value": ("unclear",),
    "RunCause.ENGINE_FAILED.value": ("engine failed",),
    "verdict.network": ("mean TTFT is 3.4 s, the engine's own 98 ms",), "verdict.advised_batch": ("96",),
    "kept": ("", " with TTFT ≤ 500 ms"), "of": ("", " of 16"), "load": ("", " at 5 to 8 req/s"),
    "change": ("rises from 98 ms to", "reaches"), "lower": ("rate", "concurrency"), "reason": ("HTTP 500",),
    "grew": ("requests were left unserved", "requests in flight still grew"),
    "expected": ("24 that its 267 blocks should hold",),
    "waits": ("which limit holds them is unknown: the engine exports no running count and no batch limit",),
    "first": ("more KV memory for replica 2", "a larger max_num_seqs for replica 2", "a lower rate for replica 2"),
    "text": ("no token arrives for 3 s while requests are in flight",), "listed": ("1:05, 1:15",),
    "usage": ("up to 97.3 %", "full before, now 12.0 %"), "missing": ("queue and batch limit",), "count": ("12",),
    "limits.count": ("3",), "numbers[0]": ("2",), "numbers[-1]": ("3",), "ended": ("12",), "WARM_REQUESTS": ("30",),
    "load.max_concurrency": ("16",), "sample.replica + 1": ("2",), "worst.number + 1": ("2",), "held": ("12",),
    "len(stalls)": ("3",), "self.concurrency_limit": ("16",), "HOW_TO_GRANT": ("sudo setcap",),
    "what": ("the batch size changes", "the engine restarts 2 times with another batch size"),
    "times": ("", " 2 times"),
    "between": ("", " [9.0, 13]"), "amount": ("12", "1,250"),
    "' and '.join(parts)": ("48% of the requests in the engine and 12% of its tokens",),
    "span": ("12 s",), "fullest": ("", "up to "),
    "busy.name": ("replica 2",), "busy.count": ("3",),
    "overload_now:less": ("lower the rate",),
    "overload_now:lower": ("lower the concurrency limit", "set a concurrency limit", "lower the rate below 12"),
    "verdict_now:load": ("rate", "concurrency"),
    "' and no '.join(absent)": ("queue", "running count and no batch limit"),
    "', '.join((clock(each.begin) for each in others[:3]))": ("1:05, 1:25",),
    "calm_story:clock": ("", ", counted from due"),
    "calm_story:after": ("", " after its cold start"), "limit_text:count": ("about 12 sequences",),
    "overload_story:name": ("KV-bound", "engine or network overloaded"),
    "replica_text:place": ("replica 2",), "overload_story:count": ("1 request", "12 requests"),
    "cache_check:held": ("of an earlier run", "that it should not have"), "engine_changes:listed": ("64 → 256",),
    "', '.join(map(str, numbers[:-1]))": ("1", "1, 2"),
    "story:reason": ("", ": CUDA out of memory"), "limit_text:reason": ("", ": the engine exports no metrics"),
}  # fmt: skip
"""What other expressions of a text stand for; with the module where a name has several meanings."""


class UnknownPlaceholderError(Exception):
    """An expression of a text without a sample value: add one to NAMES or CALLS."""


@dataclass(frozen=True, slots=True)
class Template:
    """A text in the source."""

    module: str
    source: str
    """The expression."""
    texts: tuple[str, ...]
    """With all sample values."""

    @property
    def is_part(self) -> bool:
        """Whether it is only put between, or after, other texts."""
        return all(text != text.strip() or text[:1] in ",:;" for text in self.texts if text)


def templates() -> list[Template]:
    """Return all texts with a space in them, apart from docstrings, once each."""
    found = {each.source: each for path in _modules() for each in _texts(path)}
    return list(found.values())


def _modules() -> Iterator[Path]:
    (checking,) = trust.__path__
    for room in (*diagnosis.__path__, *story.__path__):
        yield from (path for path in sorted(Path(room).glob("*.py")) if path.stem not in (*_LABELS, *_OF_WATCHES))
    yield from (Path(checking) / f"{name}.py" for name in _VERDICTS)


def _texts(path: Path) -> Iterator[Template]:
    tree = ast.parse(path.read_text())
    inside = {id(part) for node in ast.walk(tree) for part in _not_texts(node)}
    for node in ast.walk(tree):
        if id(node) not in inside and (text := _source(node)) is not None:
            yield Template(path.stem, ast.unparse(text), tuple(_filled(text, path.stem)))


def _not_texts(node: ast.AST) -> Iterator[ast.AST]:
    """Docstrings, and what is inside of another text."""
    match node:
        case ast.Expr(value=ast.Constant() as docstring):
            yield docstring
        case ast.JoinedStr():
            yield from (each for each in ast.walk(node) if each is not node)
        case _:
            return


def _source(node: ast.AST) -> ast.JoinedStr | ast.Constant | None:
    """The text that an expression is, if there is a space between words in it."""
    match node:
        case ast.JoinedStr(values=parts):
            written = [each.value for each in parts if isinstance(each, ast.Constant)]
        case ast.Constant(value=str() as value):
            written = [value]
        case _:
            return None
    words = "".join(each for each in written if isinstance(each, str))
    return node if " " in words.strip() and any(map(str.isalpha, words)) else None


def _filled(text: ast.JoinedStr | ast.Constant, module: str) -> Iterator[str]:
    parts = text.values if isinstance(text, ast.JoinedStr) else [text]
    yield from map("".join, itertools.product(*(_values(each, module) for each in parts)))


def _values(part: ast.AST, module: str) -> tuple[str, ...]:
    match part:
        case ast.Constant(value=str() as value):
            return (value,)
        case ast.FormattedValue(format_spec=ast.JoinedStr(values=[ast.Constant(value=str() as spec)])):
            return (format(_NUMBERS.get(spec[-1], 12), spec),)
        case ast.FormattedValue(value=ast.IfExp(body=ast.Constant(value=first), orelse=ast.Constant(value=second))):
            return str(first), str(second)
        case ast.FormattedValue(
            value=ast.Call(func=ast.Name(id="counted"), args=[_, ast.Constant(value=str() as noun)])
        ):
            return f"1 {noun}", f"12 {noun}s"
        case ast.FormattedValue(value=ast.Call(func=ast.Name(id=name))) if name in CALLS:
            return CALLS[name]
        case ast.FormattedValue(value=value):
            name = ast.unparse(value)
            return NAMES[f"{module}:{name}"] if f"{module}:{name}" in NAMES else _named(name, module)
        case _:
            raise UnknownPlaceholderError(ast.dump(part))


def _named(name: str, module: str) -> tuple[str, ...]:
    if name not in NAMES:
        raise UnknownPlaceholderError(f"{name} in {module}.py")
    return NAMES[name]
