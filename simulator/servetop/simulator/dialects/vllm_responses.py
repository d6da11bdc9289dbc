"""vLLM's `/v1/responses`: chat completions in typed events."""

from __future__ import annotations

from typing import Any

import orjson

from servetop.simulator.dialects.vllm_completions import VllmResponse
from servetop.simulator.server.completion import Completion, ResponseHeader
from servetop.simulator.server.generation_request import ApiError, GenerationRequest
from servetop.simulator.server.httpd import STREAM_END, Connection


def as_chat(data: dict[str, Any]) -> dict[str, Any]:
    """Convert the request to a chat request; `input` is a text or a list of messages."""
    content = data.get("input")
    if not isinstance(content, str | list):
        raise ApiError("input should be a string or a list of messages", param="input")
    messages = [{"role": "user", "content": content}] if isinstance(content, str) else content
    return {**data, "messages": messages, "max_completion_tokens": data.get("max_output_tokens")}


def _whole(completion: Completion, text: str, *, status: str) -> dict[str, Any]:
    """Return the response object, complete or in progress."""
    counts = completion.usage()
    details = counts.get("prompt_tokens_details") or {"cached_tokens": 0}
    usage = {
        "input_tokens": counts["prompt_tokens"],
        "input_tokens_details": details,
        "output_tokens": counts["completion_tokens"],
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": counts["total_tokens"],
    }
    parts: list[dict[str, Any]] = [{"annotations": [], "text": text, "type": "output_text", "logprobs": None}]
    message = {"id": _item(completion), "content": parts, "role": "assistant", "status": status, "type": "message"}
    ended = status != "in_progress"
    return {
        "id": completion.header.response_id,
        "created_at": completion.header.created,
        "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
        "model": completion.header.model,
        "object": "response",
        "output": [message] if ended else [],
        "status": status,
        "usage": usage if ended else None,
    }


def _item(completion: Completion) -> str:
    return f"msg_{completion.header.response_id.removeprefix('resp_')}"


class ResponsesObject(VllmResponse):
    """A complete (non-streamed) response of the Responses API."""

    def whole(self, text: str) -> dict[str, object]:
        return _whole(self, text, status="incomplete" if self.finish_reason == "length" else "completed")


class ResponsesStream(Completion):
    """One delta per token; ends with `response.completed` even at the token limit, as in vLLM."""

    def __init__(self, generation: GenerationRequest, connection: Connection, *, header: ResponseHeader) -> None:
        super().__init__(generation, connection, header=header)
        self._text: list[bytes] = []
        self._number = 0
        self._after = b'","item_id":"%b","logprobs":[],"output_index":0,"sequence_number":' % _item(self).encode()
        connection.start_stream()
        initial = {"response": _whole(self, "", status="in_progress")}
        events = self._event("response.created", **initial) + self._event("response.in_progress", **initial)
        self.connection.send(events)

    def token(self, *, last: bool) -> None:
        """Send the token's delta, and the whole response after the last one."""
        word = self.word()
        self._text.append(word)
        self.sent += 1
        data = b'{"content_index":0,"delta":"' + word + self._after + b"%d" % self._number
        events = self._framed(b"response.output_text.delta", data + b',"type":"response.output_text.delta"}')
        if last:
            text = orjson.loads(b'"' + b"".join(self._text) + b'"')
            status = "incomplete" if self.finish_reason == "length" else "completed"
            events += self._event("response.completed", response=_whole(self, text, status=status)) + STREAM_END
        self.connection.send(events)
        if last:
            self.connection.finish()

    def _event(self, kind: str, **content: object) -> bytes:
        return self._framed(kind.encode(), orjson.dumps({**content, "sequence_number": self._number, "type": kind}))

    def _framed(self, kind: bytes, data: bytes) -> bytes:
        self._number += 1
        event = b"event: %b\ndata: %b\n\n" % (kind, data)
        return b"%x\r\n%b\r\n" % (len(event), event)
