"""Finds out how a server of unknown engine wants its requests, with a few short ones."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterator
from dataclasses import dataclass, replace

from servetop.core.config import WorkloadConfig
from servetop.core.events import RequestStatus
from servetop.core.interfaces.dialect import Prompt
from servetop.core.text.shorten import cut_short
from servetop.engines.dialects.json_values import error_message, load_json
from servetop.run.attached.request_format import LIMIT, NEW_LIMIT, PATHS, RequestFormat
from servetop.run.attached.single_request import RequestTarget, SingleRequest, send_single
from servetop.workload.prompts.ordinary_tokens import UNCHECKED_IDS, draws_token_ids, ordinary_ids

MOST_REQUESTS = 6
"""Requests after which the search ends."""
OPTIONAL_FIELDS = ("ignore_eos", "stream_options")
"""Fields of a request that may be left out: the server is asked for the same without them."""
_FIELD_OF = {"include_usage": "stream_options"}
"""Fields by the names of their parts."""
_REFUSALS = (401, 402, 403, 407, 408, 429)
"""HTTP statuses that say nothing about the format of a request; neither do those from 500."""
_NO_ENDPOINT = (404, 405)
_BAD_REQUEST = (200, 400, 422)
"""HTTP statuses of errors that may name a field; some gateways send errors with 200."""
ADVICE = "servetop doctor URL tells more; --endpoint, --extra-body and --no-stream change requests"
_REASON_CHARS = 120
_SHORT_TOKENS = 8
SHORT_TEXT = "Count from one to ten."
"""The text of a short request."""

Send = Callable[[RequestFormat], Awaitable[SingleRequest]]
"""Sends a short request in a format and returns it when it has ended."""


@dataclass(frozen=True, slots=True)
class _Rejection:
    """Why a format was not accepted; `field`: because of it alone."""

    tried: RequestFormat
    error: str
    field: str = ""

    def text(self, *, with_ids: bool) -> str:
        where = PATHS[self.tried.endpoint]
        if with_ids and self.tried.endpoint == "completions":
            where += " as text" if self.tried.as_text else " with token ids"
        return f"{self.field or where}: {cut_short(self.error, _REASON_CHARS)}"


async def find_format(target: RequestTarget, workload: WorkloadConfig, *, timeout: float) -> tuple[RequestFormat, str]:
    """Return the format in which the server completes a request of `workload`, and a remark unless it is the usual one.

    `timeout` is for each request, in seconds. What the workload sends by `extra_body` is never changed.
    """
    with_ids = draws_token_ids(replace(workload, endpoint="completions"))
    prompt = short_prompt(target, with_ids=with_ids)

    async def send(tried: RequestFormat) -> SingleRequest:
        changed = replace(workload, endpoint=tried.endpoint, extra_body=tried.body_changes(workload.extra_body))
        return await send_single(target, tried.dialect, prompt=prompt, workload=changed, timeout=timeout)

    return await accepted_format(send, with_ids=with_ids, fixed=workload.extra_body)


def short_prompt(target: RequestTarget, *, with_ids: bool) -> Prompt:
    """Return the prompt of a short request, as ordinary token ids of the model or as text."""
    ids = (ordinary_ids(target.token_ids) or tuple(UNCHECKED_IDS))[:_SHORT_TOKENS]
    tokens = ids if with_ids else None
    return Prompt(text=SHORT_TEXT, token_ids=tokens, input_tokens=len(ids), output_tokens=_SHORT_TOKENS)


async def accepted_format(send: Send, *, with_ids: bool, fixed: Collection[str]) -> tuple[RequestFormat, str]:
    """Try formats until the server completes a request; return it, and a remark unless it is the default.

    `with_ids`: the load has prompts of token ids; `fixed` fields are the user's and stay as they are. A server that
    refuses or fails is not tried further: the default is returned.
    """
    default = RequestFormat()
    text = [replace(default, as_text=True)] if with_ids else []
    left = deque([default, *text, RequestFormat("chat")])
    rejections: list[_Rejection] = []
    for _ in range(MOST_REQUESTS):
        tried = left.popleft()
        request = await send(tried)
        if _is_accepted(request):
            return tried, _remark(tried, rejections, with_ids=with_ids) if tried != default else ""
        error = request.error or "no completion"
        if request.http_status is None or request.http_status in _REFUSALS or request.http_status >= 500:
            why = f"{PATHS[tried.endpoint]}: {cut_short(error, _REASON_CHARS)}"
            return default, f"which requests the server accepts is unknown: {why}"
        field = rejected_field(request, tried, fixed)
        rejections.append(_Rejection(tried, error, field))
        if field:
            left.appendleft(without_field(tried, field))
        elif request.http_status in _NO_ENDPOINT:
            left = deque(each for each in left if each.endpoint != tried.endpoint)
        if not left:
            break
    whole = "; ".join(each.text(with_ids=with_ids) for each in rejections if not each.field)
    return default, f"the server accepts no request as it is ({ADVICE}): {whole}"


def _is_accepted(request: SingleRequest) -> bool:
    """Whether the server sent a completion, or a part of it before the timeout or the end of its stream."""
    if request.status is RequestStatus.OK:
        return True
    return request.http_status == 200 and request.status is not RequestStatus.ERROR


def _remark(chosen: RequestFormat, rejections: list[_Rejection], *, with_ids: bool) -> str:
    reasons = [each for each in rejections if not each.field or each.tried.endpoint == chosen.endpoint]
    return f"requests go to {chosen.description}: {'; '.join(each.text(with_ids=with_ids) for each in reasons)}"


def without_field(tried: RequestFormat, field: str) -> RequestFormat:
    """Return the format without a field, or with the newer name of the token limit."""
    if field == LIMIT:
        return replace(tried, new_limit=True)
    return replace(tried, without=(*tried.without, field))


def rejected_field(request: SingleRequest, tried: RequestFormat, fixed: Collection[str]) -> str:
    """Return the field that an error names first and that can be left out or renamed; empty if there is none."""
    if request.http_status not in _BAD_REQUEST:
        return ""
    can_change = {name for name in OPTIONAL_FIELDS if name not in tried.without and name not in fixed}
    if tried.endpoint == "chat" and not tried.new_limit and not {LIMIT, NEW_LIMIT} & set(fixed):
        can_change.add(LIMIT)
    named = (_FIELD_OF.get(name, name) for name in named_fields(request.received))
    return next((name for name in named if name in can_change), "")


def named_fields(body: bytes) -> Iterator[str]:
    """Return the names of fields in an error: those of `param` and `loc` (FastAPI), then the words of its message."""
    try:
        content = load_json(body)
    except ValueError:
        yield from re.findall(r"\w+", body.decode("utf-8", "replace"))
        return
    yield from _located(content, depth=4)
    yield from re.findall(r"\w+", error_message(content))


def _located(content: object, *, depth: int) -> Iterator[str]:
    if not depth:
        return
    if isinstance(content, list):
        for each in content:
            yield from _located(each, depth=depth - 1)
    elif isinstance(content, dict):
        location = content.get("loc")
        names = [content.get("param"), *(location if isinstance(location, list) else ())]
        yield from (name for name in names if isinstance(name, str))
        for key in ("error", "errors", "detail"):
            yield from _located(content.get(key), depth=depth - 1)
