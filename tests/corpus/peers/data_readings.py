"""What a peer reads from a data file, and the main function of its reader process; standard library only."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.corpus.peers.readings import load_jobs, write_readings


@dataclass(frozen=True, slots=True, kw_only=True)
class DataJob:
    """One data file that a peer is to read."""

    name: str
    body: bytes
    dataset: str
    """As what the right reading reads it; "" if it is of no known kind."""
    outputs: bool
    """Whether output lengths are to be taken from the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataPeerReading:
    """What a peer says about the rows of one data file; None where it says nothing."""

    error: str = ""
    texts: list[str] | None = None
    turns: list[list[str]] | None = None
    system: list[str] | None = None
    outputs: list[int] | None = None
    lengths: list[list[int]] | None = None
    times: list[float] | None = None
    shuffled: bool = False
    """Whether the peer always takes the rows in an order of its own."""
    skipped: str = ""
    """Why the peer cannot be asked for such a file."""

    @property
    def rows(self) -> int:
        """The number of usable rows."""
        return len(next((each for each in (self.texts, self.turns, self.lengths) if each is not None), ()))


@dataclass(frozen=True, slots=True)
class Loader:
    """A loader of a peer, and the name that its files must have."""

    read: Callable[[Path, DataJob], DataPeerReading]
    file_name: str


def is_json_lines(body: bytes) -> bool:
    """Whether the first line is a JSON object, in any encoding that agrees with ASCII."""
    line = body.removeprefix(b"\xef\xbb\xbf").lstrip().split(b"\n", 1)[0].strip()
    return line.startswith(b"{") and line.endswith(b"}")


def is_json_array(body: bytes) -> bool:
    """Whether the file begins with a JSON array."""
    return body.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[")


def since_first(times: list[float]) -> list[float]:
    """Return times from the first row on, as the right readings have them."""
    return [round(time - times[0], 6) for time in times]


def main(choose: Callable[[DataJob], Loader | None]) -> None:
    """Read the data files in the file of the first argument, and write the readings into that of the second."""
    jobs, results = map(Path, sys.argv[1:3])
    write_readings(results, {job.name: _read(choose(job), job) for job in load_jobs(jobs, DataJob)})


def _read(loader: Loader | None, job: DataJob) -> DataPeerReading:
    if loader is None:
        return DataPeerReading(skipped="no loader for files of this format")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, loader.file_name)
        path.write_bytes(job.body)
        try:
            return loader.read(path, job)
        except Exception as error:
            return DataPeerReading(error=f"{type(error).__name__}: {error}")
