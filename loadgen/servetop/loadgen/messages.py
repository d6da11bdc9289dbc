"""What the run process and a sender say to each other, and its frames: a 4-byte little-endian length, then msgpack.

Nothing in a message refers to shared memory. All instants are run time: both sides read one CLOCK_MONOTONIC and know
its value at second 0 (`origin_ns`), so a sender on another machine would need its clock related to this one first.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec

from servetop.core.arrays import np
from servetop.core.config import ConnectionConfig, WorkloadConfig
from servetop.core.errors import LoadError
from servetop.core.events import Command, Note, RequestRecord, StageChange
from servetop.core.tick import ClientTick
from servetop.workload.plan import LoadPhase, LoadPlan

MAX_FRAME_BYTES = 1 << 30
_LENGTH = struct.Struct("<I")


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderSetup:
    """All that a sender knows of the run before its load."""

    url: str
    more_urls: tuple[str, ...] = ()
    """Replicas of the server at `url`, to which requests go in turn."""
    model: str
    """The name that requests ask for."""
    dialect: str = "completions"
    """The request and stream format: an OpenAI endpoint name, or `module:Class`."""
    continuous_usage: bool = False
    """The server understands `stream_options.continuous_usage_stats`."""
    workload: WorkloadConfig = WorkloadConfig()
    seed: int = 0
    max_model_len: int | None = None
    """Tokens of the longest context that the engine takes, where it tells."""
    corpus_ids: tuple[int, ...] = ()
    """The text corpus of the workload in the engine's own tokens, where exact lengths are wanted."""
    text_prompts: bool = False
    """The dialect accepts no token ids, so every prompt is sent as text."""
    origin_ns: int
    """`perf_counter_ns` at second 0 of the run."""
    worker: int = 0
    workers: int = 1
    """Senders that share the load, those that stand by included."""
    active: tuple[int, ...] = ()
    """Those of them that are at work from the beginning; empty: all."""
    first_id: int = 0
    """Number of the first request: a resumed run goes on counting."""
    api_key: str | None = field(default=None, repr=False)
    """Lives in memory and in the pipe to the sender only."""
    connection: ConnectionConfig = field(default=ConnectionConfig(), repr=False)
    """With all decided; a proxy's credentials live where the key does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedCommand:
    """What makes several senders obey as one."""

    at: float
    """Run time as of which all of them obey; a little ahead, so that all have heard of it by then."""
    number_from: int
    """No sender has reached this request number: from here it counts whose requests are whose, where that changes."""
    active: tuple[int, ...] | None = None
    """The senders that are at work from then on, where that changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToSender:
    """One message to a sender; one field is set, or a command and its order."""

    setup: SenderSetup | None = None
    plan: LoadPlan | None = None
    command: Command | None = None
    order: TimedCommand | None = None
    """Only among several senders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BegunRequest:
    """A request that has got its number: should its sender die, this is all that is known of it."""

    number: int
    stage: int
    due: float
    conversation: int | None = None
    turn: int | None = None
    """See RequestRecord."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SenderReport:
    """What a sender says at the end of every tick."""

    state: LoadPhase
    tick: ClientTick
    records: tuple[RequestRecord, ...] = ()
    """Requests that ended in the tick."""
    stages: tuple[StageChange, ...] = ()
    notes: tuple[Note, ...] = ()
    replies: tuple[Command, ...] = ()
    """Commands obeyed in the tick, with `obeyed_at` and `reply` filled in."""
    begun: tuple[BegunRequest, ...] = ()
    """Only among several senders."""
    next_number: int = 0
    """No request of this or a greater number has begun; only among several senders."""
    deaths: tuple[str, ...] = ()
    """Of several senders at work, those that died since the last report, and what that cost: a line each."""


_Message = TypeVar("_Message")


class FrameCodec(Generic[_Message]):
    """Frames of one type of message, out of and into bytes that arrive in pieces."""

    def __init__(self, kind: type[_Message]) -> None:
        self._encoder = msgspec.msgpack.Encoder(enc_hook=_pack_array)
        self._decoder = msgspec.msgpack.Decoder(kind, dec_hook=_unpack_array)
        self._buffer = bytearray()

    def frame(self, message: _Message) -> bytes:
        """The bytes that stand for a message."""
        payload = self._encoder.encode(message)
        return _LENGTH.pack(len(payload)) + payload

    def feed(self, data: bytes) -> list[_Message]:
        """The messages that these bytes complete; LoadError when they cannot be messages."""
        self._buffer += data
        messages: list[_Message] = []
        start = 0
        while len(self._buffer) - start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer, start)
            if length > MAX_FRAME_BYTES:
                raise LoadError("a sender and the run do not understand each other: is one of them another version?")
            end = start + _LENGTH.size + length
            if end > len(self._buffer):
                break
            messages.append(self._decode(bytes(self._buffer[start + _LENGTH.size : end])))
            start = end
        del self._buffer[:start]
        return messages

    def _decode(self, payload: bytes) -> _Message:
        try:
            return self._decoder.decode(payload)
        except (msgspec.MsgspecError, ValueError, struct.error) as error:
            raise LoadError(f"a sender and the run do not understand each other ({error})") from error


def _pack_array(value: object) -> object:
    """The numbers as they are, little-endian: exact, and cheap at a thousand records a second."""
    if not isinstance(value, np.ndarray):
        raise TypeError(f"cannot send a {type(value).__name__}")
    return value.astype(value.dtype.newbyteorder("<"), copy=False).tobytes()


def _unpack_array(kind: Any, blob: Any) -> object:
    return np.frombuffer(blob, dtype=kind.wire_type)
