"""The responses of one request in a profile export: their stamps, tokens, counts and errors.

Of the OpenAI API a response is what arrived at once: an event, several, or a part of one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from servetop.core.errors import UsageError

_FIELDS = ("data:", ":", "event:", "id:", "retry:")
_DATA = "data:"
_MOST_TEXT = 300
"""Characters of an error that are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """One response of a request."""

    stamp: int
    """When it arrived, in nanoseconds of the tool's clock."""
    tokens: int = 0
    """Events with content, or tokens where the file has their ids; 0 for an empty response."""
    error: str | None = None
    usage: Mapping[str, Any] = field(default_factory=dict)
    """The counts of the server; empty without them."""


def responses_of(stamps: Sequence[int], outputs: Sequence[Any], kind: str, what: str) -> Iterator[Response]:
    """Yield the responses of a service of that kind, without empty ones of the OpenAI API; UsageError for damage."""
    if not all(isinstance(each, Mapping) for each in outputs):
        raise UsageError(f"response_outputs {what} are not objects: is the file damaged?")
    if kind != "openai":
        yield from (
            Response(stamp=stamp, tokens=_tensor_tokens(each)) for stamp, each in zip(stamps, outputs, strict=True)
        )
        return
    texts = [str(each.get("response") or "") for each in outputs]
    for stamp, text in _whole(zip(stamps, texts, strict=True)):
        found = _of_text(stamp, text, what)
        if found.tokens or found.error or found.usage:
            yield found


def _whole(pairs: Iterator[tuple[int, str]]) -> list[tuple[int, str]]:
    """Return responses that begin with an event; the rest of one that came later is moved to its beginning."""
    whole: list[tuple[int, str]] = []
    for stamp, text in pairs:
        begin = 0 if not whole or text.startswith(_FIELDS) else text.find(f"{_DATA} ")
        rest, start = (text, "") if begin < 0 else (text[:begin], text[begin:])
        if rest:
            whole[-1] = (whole[-1][0], whole[-1][1] + rest)
        if start:
            whole.append((stamp, start))
    return whole


def _of_text(stamp: int, text: str, what: str) -> Response:
    """Return what the events of a response say together."""
    tokens, error = 0, None
    usage: Mapping[str, Any] = {}
    for event in text.strip().split("\n\n"):
        name, data = _event(event)
        if name == "error":
            error = error or " ".join((data or "an error event").split())[:_MOST_TEXT]
        elif data and data != "[DONE]":
            content = _parsed(data, what)
            tokens += bool(_content(content))
            error = error or _error(content)
            found = content.get("usage")
            usage = found if isinstance(found, Mapping) and found else usage
    return Response(stamp=stamp, tokens=tokens, error=error, usage=usage)


def _event(text: str) -> tuple[str, str]:
    """Return the type and the data of an event, or a whole body as data."""
    lines = text.splitlines()
    if not text.startswith(_FIELDS):
        return "", text.strip()
    data = [line.removeprefix(_DATA).strip() for line in lines if line.startswith(_DATA)]
    names = [line.removeprefix("event:").strip() for line in lines if line.startswith("event:")]
    return names[0] if names else "", "\n".join(data)


def _parsed(data: str, what: str) -> Mapping[str, Any]:
    try:
        found = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise UsageError(f"a response {what} is not JSON, or cut off: is the file damaged?") from error
    if isinstance(found, list) and found:  # Hugging Face's generate endpoint
        found = found[0]
    return found if isinstance(found, Mapping) else {}


def _content(body: Mapping[str, Any]) -> object:
    """Return the text of a completion, a chat, a chunk of either, or the answer of a generate endpoint."""
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, Mapping):
        return body.get("text_output") or body.get("generated_text")
    message = choice.get("delta") or choice.get("message")
    return message.get("content") if isinstance(message, Mapping) else choice.get("text")


def _error(body: Mapping[str, Any]) -> str | None:
    error = body.get("error")
    text = error.get("message") if isinstance(error, Mapping) else error
    return " ".join(str(text).split())[:_MOST_TEXT] if text else None


def _tensor_tokens(output: Mapping[str, Any]) -> int:
    """Return the tokens of a response of Triton: its ids, or 1 for a text; 0 for an empty one."""
    ids = output.get("output_ids")
    if "output_ids" in output:
        return len(ids) if isinstance(ids, list) else int(isinstance(ids, int))
    return int(bool(output.get("text_output", "other tensors")))
