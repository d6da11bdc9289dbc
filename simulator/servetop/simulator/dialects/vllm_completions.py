"""vLLM's text and chat completions: one server-sent event per token, or one JSON object."""

from __future__ import annotations

from typing import Any

import orjson

from servetop.core.units import MS_PER_S
from servetop.simulator.dialects.metric_counters import phases_of
from servetop.simulator.server.completion import Completion, ResponseHeader
from servetop.simulator.server.generation_request import GenerationRequest
from servetop.simulator.server.httpd import STREAM_END, Connection

_FINGERPRINT = "servetop-sim"
# The end of an event's choice, and of the last event's choice, in vLLM 0.32.
_CHAT_CHOICE_ENDS = (
    b'"},"logprobs":null,"finish_reason":null,"token_ids":null}]',
    b'"},"logprobs":null,"finish_reason":"%b","stop_reason":null,"token_ids":null}]',
)
_TEXT_CHOICE_ENDS = (
    b'","logprobs":null,"finish_reason":null,"stop_reason":null,"prompt_token_ids":null,"token_ids":null}]',
    b'","logprobs":null,"finish_reason":"%b","stop_reason":null,"prompt_token_ids":null,"token_ids":null}]',
)


class VllmResponse(Completion):
    """Collects the text and sends one object at the end."""

    def __init__(
        self, generation: GenerationRequest, connection: Connection, *, header: ResponseHeader, timed: bool = False
    ) -> None:
        """`timed` adds the request's own times."""
        super().__init__(generation, connection, header=header)
        self._timed = timed
        self._text: list[bytes] = []

    def token(self, *, last: bool) -> None:
        """Collect the word; respond after the last one, of several completions after all are finished."""
        self._text.append(self.word())
        self.sent += 1
        if not last:
            return
        body, choices = self.whole(orjson.loads(b'"' + b"".join(self._text) + b'"')), self.header.choices
        if choices is not None:
            if not choices.finish(self.header.index, body["choices"][0]):
                return
            body |= {"choices": choices.choices, "usage": choices.usage()}
        self.connection.respond(200, orjson.dumps(body))

    def whole(self, text: str) -> dict[str, Any]:
        """Return the body of the response."""
        choice: dict[str, object] = {"index": self.header.index}
        if self.generation.chat:
            choice["message"] = {"role": "assistant", "content": text, "refusal": None, "tool_calls": []}
        else:
            choice["text"] = text
        choice |= {"logprobs": None, "finish_reason": self.finish_reason, "stop_reason": None}
        return {
            "id": self.header.response_id,
            "object": "chat.completion" if self.generation.chat else "text_completion",
            "created": self.header.created,
            "model": self.header.model,
            "choices": [choice],
            "system_fingerprint": _FINGERPRINT,
            "usage": self.usage(),
            **_metrics(self, timed=self._timed),
        }


class VllmStream(Completion):
    """One event per token; the constant parts are rendered once."""

    def __init__(
        self, generation: GenerationRequest, connection: Connection, *, header: ResponseHeader, timed: bool = False
    ) -> None:
        """`timed` adds the request's own times to the event with the usage."""
        super().__init__(generation, connection, header=header)
        self._timed = timed
        kind = "chat.completion.chunk" if generation.chat else "text_completion"
        head = {"id": header.response_id, "object": kind, "created": header.created, "model": header.model}
        self._head = b"data: " + orjson.dumps(head)[:-1]
        opening = b'"delta":{"content":"' if generation.chat else b'"text":"'
        self._before = self._head + b',"choices":[{"index":%d,' % header.index + opening
        self._after, self._last = _CHAT_CHOICE_ENDS if generation.chat else _TEXT_CHOICE_ENDS
        self._usage = generation.continuous_usage
        if not header.index:
            connection.start_stream()

    def token(self, *, last: bool) -> None:
        """Send the token's event; after the last one also the usage, if requested, and `[DONE]`."""
        events = b""
        if not self.sent and self.generation.chat:
            events = self._role_event()
        word = self.word()
        self.sent += 1
        after = self._last % self.finish_reason.encode() if last else self._after
        tail = self._usage_tail() if self._usage else b"}\n\n"
        event = self._before + word + after + tail
        events += b"%x\r\n%b\r\n" % (len(event), event)
        choices = self.header.choices
        finished = last and (choices is None or choices.finish(self.header.index, {}))
        if finished:
            events += self._ending()
        self.connection.send(events)
        if finished:
            self.connection.finish()

    def _usage_tail(self) -> bytes:
        return b',"usage":' + orjson.dumps(self.usage()) + b"}\n\n"

    def _role_event(self) -> bytes:
        choice = (
            b',"choices":[{"index":%d,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]'
            % self.header.index
        )
        event = self._head + choice + (self._usage_tail() if self._usage else b"}\n\n")
        return b"%x\r\n%b\r\n" % (len(event), event)

    def _ending(self) -> bytes:
        events = b""
        if self.generation.include_usage:
            body = {"usage": self.all_usage(), **_metrics(self, timed=self._timed)}
            event = self._head + b',"choices":[],' + orjson.dumps(body)[1:] + b"\n\n"
            events = b"%x\r\n%b\r\n" % (len(event), event)
        return events + b"e\r\ndata: [DONE]\n\n\r\n" + STREAM_END


def _metrics(completion: Completion, *, timed: bool) -> dict[str, dict[str, float]]:
    """The times of the request, as vLLM sends them with `--enable-per-request-metrics`; nothing without `timed`."""
    if not timed or completion.seq is None:
        return {}
    times = phases_of(completion.seq, tokens=completion.sent)
    return {
        "metrics": {
            "queue_time_ms": times.queue * MS_PER_S,
            "time_to_first_token_ms": times.prefill * MS_PER_S,
            "generation_time_ms": times.decode * MS_PER_S,
        }
    }
