"""Messages between the run process and its sender processes.

A frame is a 4-byte little-endian length followed by msgpack. No message refers to shared memory. All times are run
time: both sides read one CLOCK_MONOTONIC and know its value at second 0 (`origin_ns`), so a sender on another machine
would first need its clock related to this one.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec

from servetop.core.arrays import np
from servetop.core.config import ConnectionConfig, WorkloadConfig
from servetop.core.errors import LoadError
from servetop.core.events import Command, Note, RequestRecord, StageChange
from servetop.core.interfaces.request_in_flight import RequestInFlight
from servetop.core.tick import ClientTick
from servetop.workload.stages.plan import LoadPhase, LoadPlan
from servetop.workload.stages.stage_draws import StageDraws

MAX_FRAME_BYTES = 1 << 30
_LENGTH = struct.Struct("<I")
_PROTOCOL_ERROR = "protocol error between run and sender process: are both the same servetop version?"


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderSetup:
    """Everything a sender needs before its first plan."""

    url: str
    more_urls: tuple[str, ...] = ()
    """Replicas of the server at `url`; requests are distributed round-robin over all of them."""
    model: str
    """Model name sent with each request."""
    dialect: str = "completions"
    """The request and stream format: an OpenAI endpoint name, or `module:Class`."""
    continuous_usage: bool = False
    """The server supports `stream_options.continuous_usage_stats`."""
    workload: WorkloadConfig = WorkloadConfig()
    max_model_len: int | None = None
    """Longest context in tokens, if the engine reports it."""
    corpus_ids: tuple[int, ...] = ()
    """The workload's text corpus as the engine's token ids, for exact prompt lengths."""
    token_ids: tuple[int, ...] = ()
    """Ordinary tokens of the model in ascending order, for random prompts; empty: unknown."""
    block_size: int | None = None
    """Tokens of a KV block, if the engine reports it."""
    text_prompts: bool = False
    """The dialect accepts no token ids, so every prompt is sent as text."""
    origin_ns: int
    """`perf_counter_ns` at second 0 of the run."""
    worker: int = 0
    workers: int = 1
    """Senders that share the load, including those on standby."""
    active: tuple[int, ...] = ()
    """Senders that are active from the start; empty: all."""
    draws: StageDraws | None = None
    """Those of the first stage, so that its first requests are ready before the plan arrives; None: not known."""
    goodput: Mapping[str, float] = field(default_factory=dict)
    """Objectives in seconds by metric; each tick counts the requests that met all of them."""
    first_id: int = 0
    """Number of the first request; a resumed run continues its numbering."""
    api_key: str | None = field(default=None, repr=False)
    """Kept only in memory and in the pipe to the sender."""
    connection: ConnectionConfig = field(default=ConnectionConfig(), repr=False)
    """Fully resolved; proxy credentials are protected like the API key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedCommand:
    """A change that all senders of a pool apply at the same run time."""

    at: float
    """Run time at which it takes effect; far enough ahead for every sender to receive it first."""
    number_from: int
    """No sender has reached this request number yet; a new partition of the requests counts from here."""
    active: tuple[int, ...] | None = None
    """The senders that are active from then on; None: unchanged."""
    command: Command | None = None
    """The load command to apply; None: only the partition changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToSender:
    """One message to a sender; exactly one field is set."""

    setup: SenderSetup | None = None
    plan: LoadPlan | None = None
    command: Command | None = None
    """Applied on receipt; sent to a single sender."""
    timed_command: TimedCommand | None = None
    """Sent to the senders of a pool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedRequest:
    """A request that was given a number: all that is known of it if its sender dies."""

    number: int
    stage: int
    due: float
    conversation: int | None = None
    turn: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SenderReport:
    """What a sender reports at the end of every tick."""

    state: LoadPhase
    tick: ClientTick
    records: tuple[RequestRecord, ...] = ()
    """Requests that ended during the tick."""
    in_flight: tuple[RequestInFlight, ...] | None = None
    """The last MOST_IN_FLIGHT requests in flight, by due time; None in the ticks that do not report them."""
    stages: tuple[StageChange, ...] = ()
    notes: tuple[Note, ...] = ()
    replies: tuple[Command, ...] = ()
    """Commands applied during the tick, with `applied_at` and `reply` filled in."""
    reply_counts: dict[int, int] = field(default_factory=dict)
    """How many requests the reply to a stop or to a cancellation counts, by the command's id."""
    started: tuple[StartedRequest, ...] = ()
    """Requests numbered during the tick; filled in by the senders of a pool."""
    next_number: int = 0
    """Lowest request number that is not in use yet; filled in by the senders of a pool."""
    deaths: tuple[str, ...] = ()
    """One line for each active sender that died since the last report; filled in by the pool."""


_Message = TypeVar("_Message")


class FrameCodec(Generic[_Message]):
    """Encodes and decodes frames of one message type; input may be split anywhere."""

    def __init__(self, kind: type[_Message]) -> None:
        self._encoder = msgspec.msgpack.Encoder(enc_hook=_pack_array)
        self._decoder = msgspec.msgpack.Decoder(kind, dec_hook=_unpack_array)
        self._buffer = bytearray()

    def frame(self, message: _Message) -> bytes:
        """Encode one message."""
        payload = self._encoder.encode(message)
        return _LENGTH.pack(len(payload)) + payload

    def feed(self, data: bytes) -> list[_Message]:
        """Return the messages completed by `data`; LoadError if the bytes are not valid frames."""
        self._buffer += data
        messages: list[_Message] = []
        start = 0
        while len(self._buffer) - start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer, start)
            if length > MAX_FRAME_BYTES:
                raise LoadError(_PROTOCOL_ERROR)
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
            raise LoadError(f"{_PROTOCOL_ERROR} ({error})") from error


def _pack_array(value: object) -> object:
    """Send the raw little-endian numbers: exact, and cheap at a thousand records per second."""
    if not isinstance(value, np.ndarray):
        raise TypeError(f"cannot send a {type(value).__name__}")
    return value.astype(value.dtype.newbyteorder("<"), copy=False).tobytes()


def _unpack_array(kind: Any, blob: Any) -> object:
    return np.frombuffer(blob, dtype=kind.wire_type)
