"""What the run process and a sender say to each other, and its frames: a 4-byte little-endian length, then msgpack.

Nothing in a message refers to shared memory. All instants are run time: both sides read one CLOCK_MONOTONIC and know
its value at second 0 (`origin_ns`), so a sender on another machine would need its clock related to this one first.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np

from servetop.core.config import WorkloadConfig
from servetop.core.errors import LoadError
from servetop.core.events import Command, FloatArray, IntArray, Note, RequestRecord, StageChange
from servetop.core.packing import pack_counts, pack_times, unpack_counts, unpack_times
from servetop.core.tick import ClientTick
from servetop.loadgen.plan import LoadPlan

__all__ = ["FrameCodec", "LoadPlan", "SenderReport", "SenderSetup", "SenderState", "ToSender"]

MAX_FRAME_BYTES = 1 << 30
_LENGTH = struct.Struct("<I")
_FLOATS = struct.Struct("<d")


class SenderState(StrEnum):
    """What a sender is doing."""

    IDLE = "idle"
    """It has been given no load yet."""
    RUNNING = "running"
    DRAINING = "draining"
    """Nothing more is due; answers are waited for."""
    FINISHED = "finished"
    """All that the plan wanted has ended; it can be given another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderSetup:
    """All that a sender knows of the run before its load."""

    url: str
    model: str
    """The name that requests ask for."""
    endpoint: str = "completions"
    """Name of the wire dialect."""
    continuous_usage: bool = False
    """The server understands `stream_options.continuous_usage_stats`."""
    workload: WorkloadConfig = WorkloadConfig()
    seed: int = 0
    origin_ns: int
    """`perf_counter_ns` at second 0 of the run."""
    worker: int = 0
    api_key: str | None = field(default=None, repr=False)
    """Lives in memory and in the pipe to the sender only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToSender:
    """One message to a sender; exactly one field is set."""

    setup: SenderSetup | None = None
    plan: LoadPlan | None = None
    command: Command | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SenderReport:
    """What a sender says at the end of every tick."""

    state: SenderState
    tick: ClientTick
    records: tuple[RequestRecord, ...] = ()
    """Requests that ended in the tick."""
    stages: tuple[StageChange, ...] = ()
    notes: tuple[Note, ...] = ()
    replies: tuple[Command, ...] = ()
    """Commands obeyed in the tick, with `obeyed_at` and `reply` filled in."""


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
    """Times as microseconds after the first, exact one; counts in a byte each, or in none when all are 1."""
    if not isinstance(value, np.ndarray):
        raise TypeError(f"cannot send a {type(value).__name__}")
    if value.dtype == np.float64:
        return _FLOATS.pack(value[0]) + pack_times(value[1:], base=value[0]) if value.size else b""
    if value.dtype == np.int64:
        return _LENGTH.pack(value.size) + pack_counts(value)
    return value.astype("<i4").tobytes()


def _unpack_array(kind: Any, blob: Any) -> object:
    if kind == FloatArray:
        if not blob:
            return np.empty(0, np.float64)
        (first,) = _FLOATS.unpack_from(blob)
        return np.concatenate([[first], unpack_times(blob[_FLOATS.size :], base=first)])
    if kind == IntArray:
        return unpack_counts(blob[_LENGTH.size :], chunks=_LENGTH.unpack_from(blob)[0])
    return np.frombuffer(blob, dtype="<i4").astype(np.int32)
