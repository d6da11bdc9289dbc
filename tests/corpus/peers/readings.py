"""What a peer reads from a response, and the files that its reader process gets and returns; standard library only."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Job = TypeVar("Job")
Reading = TypeVar("Reading")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseJob:
    """One response that a peer is to read: the blocks of its body, and what was requested."""

    name: str
    blocks: Sequence[bytes]
    endpoint: str
    stream: bool
    content_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerReading:
    """What a peer says about one response; None where it says nothing."""

    ok: bool
    error: str = ""
    content: str | None = None
    reasoning: str | None = None
    output_tokens: int | None = None
    skipped: str = ""
    """Why the peer cannot be asked for such a response."""


def write_jobs(path: Path, jobs: Sequence[DataclassInstance]) -> None:
    """Write what a reader process is to read."""
    path.write_text(json.dumps([asdict(job) for job in jobs], default=_bytes_as_text), encoding="ascii")


def load_jobs(path: Path, kind: type[Job]) -> list[Job]:
    """Return what write_jobs wrote."""
    return [kind(**row) for row in json.loads(path.read_text(encoding="ascii"), object_hook=_text_as_bytes)]


def write_readings(path: Path, readings: Mapping[str, DataclassInstance]) -> None:
    """Write what was read, by the name of the file."""
    path.write_text(json.dumps({name: asdict(reading) for name, reading in readings.items()}), encoding="ascii")


def load_readings(path: Path, kind: type[Reading]) -> dict[str, Reading]:
    """Return what write_readings wrote."""
    rows = json.loads(path.read_text(encoding="ascii"))
    return {name: kind(**row) for name, row in rows.items()}


def _bytes_as_text(value: bytes) -> dict[str, str]:
    return {"base64": base64.b64encode(value).decode("ascii")}


def _text_as_bytes(row: dict[str, Any]) -> Any:
    return base64.b64decode(row["base64"]) if row.keys() == {"base64"} else row
