"""No command executes Python files of the directory it is started in, and each works there."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from servetop.cli.options.output_options import DisplayOptions
from servetop.cli.web.web import viewer_command
from servetop.cli.web.web_viewer import ViewerProcess
from servetop.core.system.own_python import python_argv
from servetop.engines.process.engine_process import _watchdog_argv
from servetop.recordings.library.samples import sample_path
from servetop.run.process.first_sender import SENDER_ARGV
from servetop.simulator.adapter import SERVER
from tests.cli.phases import end_of, reading
from tests.cli.terminal import Terminal
from tests.harness import RAN, Finished, Servetop, printed_url, received, wait_for
from tests.poisoned_folder import PLUG_IN, PoisonedFolder, imported_by_python, module_names

BRIEF = ("--num-prompts", "10", "--request-rate", "100", "--input-len", "8", "--output-len", "4")
SLOWER = ("--a", "", "--b", "--max-num-seqs 1", "--metric", "mean_ttft_ms", "--budget", "1s")
GOLDEN = Path(__file__).parents[1] / "golden" / "vllm.servetop"
GRID = "max_num_seqs = [2, 8]\nrequest_rate = [40]\nnum_prompts = 5\n[workload]\ninput_len = 8\noutput_len = 4\n"
_ENTER = "import os, sys; os.chdir(sys.argv.pop(1)); from servetop.cli.entry import main; sys.exit(main())"


class InPoisonedFolder:
    """The `servetop` command, started in a folder of poisoned modules."""

    def __init__(self, folder: PoisonedFolder, servetop: Servetop) -> None:
        self.folder = folder
        self.environment = servetop.environment

    def argv(self, *words: str) -> list[str]:
        """The command line of the installed command; a process started by it has the folder as working directory."""
        return [sys.executable, "-P", "-c", _ENTER, str(self.folder.path), *words]

    def __call__(self, *words: str) -> Finished:
        with self.started(*words) as process:
            out, err = process.communicate(timeout=240)
        return Finished(process.returncode, out, err)

    @contextlib.contextmanager
    def started(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        pipe = subprocess.PIPE
        argv = self.argv(*words)
        with subprocess.Popen(argv, stdout=pipe, stderr=pipe, text=True, env=self.environment) as process:
            try:
                yield process
            finally:
                process.kill()


@pytest.fixture
def poisoned(tmp_path: Path) -> PoisonedFolder:
    return PoisonedFolder(tmp_path / "poisoned", module_names())


@pytest.fixture
def command(poisoned: PoisonedFolder, servetop: Servetop) -> Iterator[InPoisonedFolder]:
    """The command; no file of the folder was executed at the end of the test."""
    yield InPoisonedFolder(poisoned, servetop)
    assert poisoned.executed == ""


OWN_PROCESSES = {
    "sender": SENDER_ARGV,
    "simulator": python_argv("-m", SERVER, "--help"),
    "viewer": (*viewer_command(GOLDEN, DisplayOptions(), steer=False), "--help"),
    "watchdog": tuple(_watchdog_argv()),
}


@pytest.mark.parametrize("argv", OWN_PROCESSES.values(), ids=OWN_PROCESSES)
def test_a_process_of_servetop_starts_beside_poisoned_modules(argv: tuple[str, ...], poisoned: PoisonedFolder) -> None:
    done = subprocess.run(argv, cwd=poisoned.path, input="", capture_output=True, text=True, check=False)
    assert (done.returncode, poisoned.executed) == (0, ""), done.stderr


def test_python_m_servetop_drops_the_working_directory(tmp_path: Path, servetop: Servetop) -> None:
    poisoned = PoisonedFolder(tmp_path / "poisoned", module_names() - imported_by_python())
    argv = [sys.executable, "-m", "servetop", "engines", "--json"]
    done = subprocess.run(
        argv, cwd=poisoned.path, env=servetop.environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, poisoned.executed) == (0, ""), done.stderr
    assert PLUG_IN not in done.stdout


@pytest.mark.integration
def test_an_empty_entry_of_the_path_is_not_passed_on(tmp_path: Path, servetop: Servetop) -> None:
    poisoned = PoisonedFolder(tmp_path / "poisoned", {"secrets", "uvloop", "msgspec", "poisoned_plug_in"})
    python_path = os.pathsep + os.environ.get("PYTHONPATH", "")
    command = InPoisonedFolder(poisoned, Servetop(servetop.folder, {"PYTHONPATH": python_path}))
    done = subprocess.run(
        command.argv("--headless", "--json", *BRIEF),
        cwd=poisoned.path,
        env=command.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode in RAN, poisoned.executed) == (True, ""), done.stderr


COMMANDS = {
    "run": ("--headless", "--json", *BRIEF),
    "workers": ("--headless", "--json", "--workers", "2", *BRIEF),
    "run-pairs": ("run-pairs", *BRIEF, *SLOWER, "--into", "{free}"),
    "sweep": ("sweep", "{grid}", "--json"),
    "predict": ("predict", "--json", *BRIEF),
    "summary": ("summary", "{golden}", "--json"),
    "compare": ("compare", "{golden}", "{copy}", "--json"),
    "check": ("check", "{golden}"),
    "verify": ("verify", "{golden}"),
    "manifest": ("manifest", "{golden}"),
    "doctor": ("doctor",),
    "engines": ("engines",),
    "ls": ("ls",),
    "ps": ("ps",),
}
ANSWERS = {"run-pairs": (0, 98, 99), "run": RAN, "workers": RAN, "sweep": RAN, "check": (0, 1, 99)}


@pytest.mark.integration
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_works_beside_poisoned_modules(name: str, command: InPoisonedFolder, tmp_path: Path) -> None:
    grid = tmp_path / "grid.toml"
    grid.write_text(GRID)
    copy = shutil.copy(GOLDEN, tmp_path / "copy.servetop")
    values = {"grid": grid, "golden": GOLDEN, "copy": copy, "free": tmp_path / "pairs"}
    done = command(*(word.format(**values) for word in COMMANDS[name]))
    assert done.code in ANSWERS.get(name, (0,)), done.err
    assert "Traceback" not in done.err
    assert PLUG_IN not in done.out


@pytest.mark.integration
def test_a_detached_run_works_beside_poisoned_modules(command: InPoisonedFolder, tmp_path: Path) -> None:
    recording = tmp_path / "run.servetop"
    started = command("--detach", "--json", "--request-rate", "8", "--duration", "300", "--record", str(recording))
    assert started.code == 0, started.err
    stopped = command("stop", json.loads(started.out)["id"])
    assert stopped.code in RAN, stopped.err


@pytest.mark.integration
def test_a_run_can_attach_to_serve_beside_poisoned_modules(command: InPoisonedFolder) -> None:
    with command.started("serve", "--port", "0", "--model", "opt-125m") as server:
        done = command("--url", printed_url(server), "--json", *BRIEF)
    assert done.code in RAN, done.err
    assert done.summary["completed"] == 10


@pytest.mark.integration
def test_a_dashboard_and_its_run_work_beside_poisoned_modules(command: InPoisonedFolder, tmp_path: Path) -> None:
    recording = tmp_path / "run.servetop"
    argv = command.argv("--request-rate", "8", "--duration", "300", "--record", str(recording))
    with Terminal.run(argv, command.environment) as terminal:
        wait_for(lambda: "● REC" in terminal.text, seconds=120, what="the dashboard")
        with reading(recording) as reader:
            wait_for(lambda: received(reader), seconds=120, what="the load")
        terminal.process.send_signal(signal.SIGTERM)
        terminal.process.wait(240)
    assert end_of(recording) is not None


async def test_a_web_viewer_works_beside_poisoned_modules(
    poisoned: PoisonedFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(poisoned.path)
    drawn = asyncio.Event()

    async def show(_: bytes) -> None:
        drawn.set()

    argv = viewer_command(sample_path("sample:h200"), DisplayOptions(), steer=False)
    viewer = await ViewerProcess.start(argv, width=120, height=40)
    pump = asyncio.ensure_future(viewer.pump(show))
    async with asyncio.timeout(120):
        await asyncio.wait({pump, waiting := asyncio.ensure_future(drawn.wait())}, return_when="FIRST_COMPLETED")
    waiting.cancel()
    await viewer.stop()
    await pump
    assert drawn.is_set(), await viewer.error()
    assert poisoned.executed == ""
