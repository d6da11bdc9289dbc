"""What a peer reads from a response, as its reader process returns it; imports only the standard library."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseJob:
    """One response that a peer is to read: the blocks of its body, and what was requested."""

    name: str
    blocks: tuple[bytes, ...]
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


def write_jobs(path: Path, jobs: Sequence[ResponseJob]) -> None:
    """Write the responses for a reader process."""
    rows = [asdict(job) | {"blocks": [base64.b64encode(block).decode("ascii") for block in job.blocks]} for job in jobs]
    path.write_text(json.dumps(rows), encoding="ascii")


def load_jobs(path: Path) -> list[ResponseJob]:
    """Return the responses that write_jobs wrote."""
    rows = json.loads(path.read_text(encoding="ascii"))
    return [ResponseJob(**row | {"blocks": tuple(map(base64.b64decode, row["blocks"]))}) for row in rows]


def write_readings(path: Path, readings: dict[str, PeerReading]) -> None:
    """Write what was read, by the name of the response."""
    path.write_text(json.dumps({name: asdict(reading) for name, reading in readings.items()}), encoding="ascii")


def load_readings(path: Path) -> dict[str, PeerReading]:
    """Return what write_readings wrote."""
    rows = json.loads(path.read_text(encoding="ascii"))
    return {name: PeerReading(**row) for name, row in rows.items()}
