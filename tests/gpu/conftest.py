"""The GPU, the Python that has vLLM, and a folder for what a run leaves; without them these tests are skipped."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from servetop.core.clock import MonotonicClock
from servetop.engines.gpu.nvidia import open_nvml
from tests.clean_environment import MACHINE
from tests.gpu.derived_load import A100_BLOCKS, BATCH, DerivedLoad, derived_load
from tests.harness import Finished, Servetop

HERE = Path(__file__).parent
TIME_LIMIT = 480.0
"""Seconds for a whole run; a lent machine may end a command after ten minutes."""
LEAST_MEMORY = 40e9
"""Bytes: 13.5 GB of weights, and the KV blocks."""
QUIET = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
FLAGS = (
    "--load-format", "dummy", "--dtype", "float16", "--block-size", "16", "--num-gpu-blocks-override", str(A100_BLOCKS),
    "--no-enable-prefix-caching", "--max-cudagraph-capture-size", str(BATCH),
)  # fmt: skip


@pytest.fixture(scope="session")
def machine() -> Iterator[None]:
    """The machine's own variables, which say where its GPU's libraries and vLLM are."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in MACHINE.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="session")
def load(machine: None) -> DerivedLoad:
    """For the GPU of this machine; without one all is skipped, and says why."""
    reader = open_nvml()
    devices = [] if reader is None else reader(MonotonicClock().now())
    if not devices:
        pytest.skip("no NVIDIA GPU can be read here: nothing was checked")
    if (devices[0].memory_total or 0) < LEAST_MEMORY:
        pytest.skip(f"{devices[0].name} has less than 40 GB: nothing was checked")
    derived = derived_load(devices, kv_blocks=A100_BLOCKS - 1)
    if derived is None:
        pytest.skip(f"the simulator has no profile of {devices[0].name}: nothing was checked")
    return derived


@pytest.fixture(scope="session")
def python(machine: None) -> str:
    """A Python that has vLLM; else this is skipped, and says why."""
    chosen = os.environ.get("SERVETOP_VLLM_PYTHON", sys.executable)
    if subprocess.run([chosen, "-c", "import vllm"], capture_output=True, check=False).returncode:
        pytest.skip(f"{chosen} has no vLLM: name one that has with SERVETOP_VLLM_PYTHON; nothing was checked")
    return chosen


@pytest.fixture(scope="session")
def kept(pytestconfig: pytest.Config, machine: None) -> Path:
    """A new folder for what the runs leave, in the first of the stated places."""
    named = os.environ.get("SERVETOP_GPU_OUT") or os.environ.get("OUT")
    base = Path(named) if named else HERE.parents[1] / "gpu-check"
    folder = next(each for number in itertools.count(1) if not (each := base / f"run-{number}").exists())
    folder.mkdir(parents=True)
    pytestconfig.get_terminal_writer().line(f"gpu-check: recordings, summaries and messages go to {folder}")
    return folder


@pytest.fixture(scope="session")
def serve(
    load: DerivedLoad, python: str, kept: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Finished]:
    """Run servetop on vLLM with Llama-2-7b and these further options; all that it leaves is kept as `name`."""
    del load  # where there is no GPU, no folder is made and no model
    model = tmp_path_factory.mktemp("model") / "llama-2-7b"
    subprocess.run([python, str(HERE.parent / "integration" / "make_model.py"), "llama-2-7b", str(model)], check=True)

    def run(name: str, *options: str) -> Finished:
        done = Servetop(kept, QUIET)(
            "--engine", "vllm", "--engine-command", f"{python} -m vllm.entrypoints.openai.api_server",
            "--model", str(model), "--max-num-seqs", str(BATCH), "--start-timeout", "300",
            *options, "--record", str(kept / f"{name}.servetop"), "--json", "--", *FLAGS,
            timeout=TIME_LIMIT,
        )  # fmt: skip
        (kept / f"{name}.json").write_text(done.out, encoding="utf-8")
        (kept / f"{name}.txt").write_text(done.err, encoding="utf-8")
        return done

    return run
