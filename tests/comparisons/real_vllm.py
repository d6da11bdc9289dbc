"""Compares runs of one real vLLM on the CPU, restarted for each: `python -m tests.comparisons.real_vllm FOLDER`.

Needs what `make integration` installs. Every run is a recording in the folder; those that exist are not measured again.
"""

from __future__ import annotations

import argparse
import itertools
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from servetop.analysis.comparison.alignment import ArmRun
from servetop.analysis.comparison.comparison import compare
from tests.comparisons.drawn_runs import loaded
from tests.comparisons.same_engine import Tally
from tests.comparisons.tables import same_table
from tests.judgement.report_page import say

HOME = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "servetop-integration" / "vllm"
OFFLINE = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
LOAD = ("--max-concurrency", "8", "--duration", "20", "--num-warmups", "16", "--input-len", "32", "--output-len", "64")
ENGINE = (
    "--load-format",
    "dummy",
    "--dtype",
    "float32",
    "--max-model-len",
    "1024",
    "--enforce-eager",
    "--no-enable-prefix-caching",
)
_GROUP = 3
"""Starts of each arm, where several are compared."""
_UNJUDGED = 99
"""Exit code of a run that was measured but whose client was the bottleneck: both share two processors here."""


def measure(recording: Path, *, seed: int) -> None:
    """Start vLLM, send the load, record it; CalledProcessError if the run fails."""
    command = f"{HOME}/bin/python -m vllm.entrypoints.openai.api_server"
    engine = ("--engine", "vllm", "--engine-command", command, "--model", str(HOME / "tiny-llama"), *LOAD)
    argv = (sys.executable, "-m", "servetop", "--headless", *engine, "--seed", str(seed), "--record", str(recording))
    done = subprocess.run((*argv, "--", *ENGINE), env=os.environ | OFFLINE, capture_output=True, check=False)
    if done.returncode not in (0, _UNJUDGED):
        recording.unlink(missing_ok=True)
        raise subprocess.CalledProcessError(done.returncode, argv, stderr=done.stderr)


def recordings(folder: Path, *, pairs: int, first_seed: int, same_seed: bool) -> list[Path]:
    """Measure what is missing; the runs of a pair follow each other."""
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for number in range(2 * pairs):
        path = folder / f"run-{number:03}.servetop"
        if not path.exists():
            measure(path, seed=first_seed + (number // 2 if same_seed else number))
            say(f"{path.name} measured")
        found.append(path)
    return found


def grouped(runs: Sequence[ArmRun], starts: int) -> Iterator[tuple[list[ArmRun], list[ArmRun]]]:
    """Yield arms of several starts each, alternating as A B B A."""
    for first in range(0, len(runs) - 2 * starts + 1, 2 * starts):
        arms: tuple[list[ArmRun], list[ArmRun]] = ([], [])
        for run, side in zip(runs[first : first + 2 * starts], itertools.cycle((0, 1, 1, 0)), strict=False):
            arms[side].append(run)
        yield arms


def main(argv: Sequence[str]) -> int:
    """Measure, compare pair by pair and group by group, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.comparisons.real_vllm", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pairs", type=int, default=50)
    parser.add_argument("--first-seed", type=int, default=0, help="seed of the first run; each further run adds 1")
    parser.add_argument("--same-seed", action="store_true", help="send the same requests in both runs of a pair")
    options = parser.parse_args(argv)
    paths = recordings(options.folder, pairs=options.pairs, first_seed=options.first_seed, same_seed=options.same_seed)
    runs = [loaded(path) for path in paths]
    tallies = {}
    for starts in (1, _GROUP):
        tally = tallies[f"vLLM restarted, {starts} start{'s' if starts > 1 else ''} each"] = Tally()
        for a, b in grouped(runs, starts):
            tally.add(compare(a, b))
    say("\n".join(same_table(tallies)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
