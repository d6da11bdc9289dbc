"""The log of vLLM with `--enable-log-requests`: arrivals, and prompts and outputs where it holds them.

Versions up to 0.9 write the prompt into the line of the request, later ones into a line of level DEBUG before it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from datetime import UTC, datetime

from servetop.workload.shape.logged_request import LoggedEvent, LoggedOutput, LoggedRequest, UnreadableLine
from servetop.workload.token_estimate import estimated_tokens

_TIME = re.compile(r"(?:(\d{4})-)?(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?")
_LEVEL = re.compile(r"\b(?:DEBUG|INFO|WARNING|ERROR) (?:\d{4}-)?\d\d-\d\d \d\d:\d\d:\d\d\b")
_MESSAGE = re.compile(
    r"[^\]]*\] (?:(?P<received>Received) request (?P<id>\S+?): |(?P<added>Added) request (?P<added_id>\S+?)\.?\s*$"
    r"|Request (?P<details_id>\S+) details: |Generated response (?P<output_id>\S+)(?P<stream> \(streaming \w+\))?"
    r"(?P<details> details)?: )"
)
_TEXT = r"('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|None)"
_PROMPT = re.compile(rf"prompt: {_TEXT}", re.DOTALL)
_OUTPUT = re.compile(rf"output: {_TEXT}", re.DOTALL)
_PROMPT_IDS = re.compile(r"prompt_token_ids: (\[[\d, ]*\])")
_OUTPUT_IDS = re.compile(r"output_token_ids: (\[[\d, ]*\])")
_PARAMS = re.compile(r"params: (\w+)")
_YEAR = 366 * 86_400.0


def is_vllm_line(line: str) -> bool:
    """Whether a line begins as those of vLLM's log do."""
    return _LEVEL.search(line[:200]) is not None


class VllmLog:
    """Reads requests of vLLM's log; lines about anything else have no events."""

    def __init__(self) -> None:
        self._details: dict[str, tuple[str | None, tuple[int, ...]]] = {}
        """Prompts of requests whose own line comes next."""
        self._received = False
        self._clock = _YearlessClock()

    def events(self, line: str) -> Iterator[LoggedEvent]:
        """Yield what a line says about a request; UnreadableLine for one that is cut or has no time."""
        found = _MESSAGE.match(line)
        if found is None:
            return
        rest = line[found.end() :]
        if (key := found["details_id"]) is not None:
            self._details[key] = _prompt(rest)
        elif (key := found["output_id"]) is not None:
            yield from _output(key, rest, stream=found["stream"] or "")
        elif (key := found["id"]) is not None:
            self._received = True
            prompt, ids = self._details.pop(key) if key in self._details else _prompt(rest)
            if _generates(rest):
                yield self._request(line, key, prompt, ids)
        elif not self._received:  # the line of the engine follows that of the server, where there is one
            yield self._request(line, found["added_id"], None, ())

    def _request(self, line: str, key: str, prompt: str | None, ids: tuple[int, ...]) -> LoggedRequest:
        at, resolution = self._clock.read(line)
        tokens = len(ids) or None
        return LoggedRequest(at=at, input_tokens=tokens, prompt=prompt, prompt_ids=ids, key=key, resolution=resolution)


class _YearlessClock:
    """Reads the times of lines, which have no year: a large step back is the turn of a year."""

    def __init__(self) -> None:
        self._last, self._years = 0.0, 0.0

    def read(self, line: str) -> tuple[float, float]:
        """Return the first time of a line in seconds, and its resolution."""
        found = _TIME.search(line[:200])
        if found is None:
            raise UnreadableLine
        year, fraction = found[1], found[7]
        month, day, hour, minute, second = (int(each) for each in found.groups()[1:6])
        try:
            moment = datetime(int(year or 2000), month, day, hour, minute, second, tzinfo=UTC)
        except ValueError:
            raise UnreadableLine from None
        at = moment.timestamp() + self._years + (float(f"0.{fraction}") if fraction else 0.0)
        if not year and at < self._last - _YEAR / 2:
            self._years += _YEAR
            at += _YEAR
        self._last = at
        return at, 0.0 if fraction else 1.0


def _generates(text: str) -> bool:
    """Whether a request generates tokens, unlike one to the tokenizer (without parameters) or for an embedding."""
    prompt = _PROMPT.match(text)
    found = _PARAMS.search(text, 0 if prompt is None else prompt.end())
    return found is None or found[1] not in ("None", "PoolingParams")


def _prompt(text: str) -> tuple[str | None, tuple[int, ...]]:
    """Return the text and the token ids of a prompt, as far as the line has them."""
    found = _PROMPT.match(text)
    if text.startswith("prompt: ") and found is None:
        raise UnreadableLine
    ids = _PROMPT_IDS.search(text, 0 if found is None else found.end())
    numbers = _literal(ids[1]) if ids is not None else ()
    prompt = _literal(found[1]) if found is not None else None
    return (str(prompt) if prompt else None), (tuple(numbers) if isinstance(numbers, list) else ())


def _output(key: str, text: str, *, stream: str) -> Iterator[LoggedOutput]:
    """Yield the tokens of an output; those of a part of a stream are in the line of the whole stream."""
    if "delta" in stream:
        return
    if (ids := _OUTPUT_IDS.match(text)) is not None:
        numbers = _literal(ids[1])
        if isinstance(numbers, list) and numbers:
            yield LoggedOutput(key=key, output_tokens=len(numbers), counted=True)
    elif (found := _OUTPUT.match(text)) is not None and (output := _literal(found[1])):
        yield LoggedOutput(key=key, output_tokens=estimated_tokens(str(output)), counted=False)


def _literal(text: str) -> object:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise UnreadableLine from None
