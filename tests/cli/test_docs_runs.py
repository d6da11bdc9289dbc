"""Command lines of the docs that start an engine run on the simulator, and end as docs/reference/exit-codes.md says.

`--engine vllm` becomes `--engine sim`, loads are shorter, the sweep has two small cells, what --on-finish copies stays
in the test's folder, presets are planned (--dry-run), and lines that open a dashboard have --headless in its place.
"""

from __future__ import annotations

import shlex
import shutil
import signal
from pathlib import Path

import pytest

from tests.cli.docs_lines import RUNS, lines_of
from tests.cli.docs_runs import assert_line_ran, bounded, command_of, in_shell, newest, with_simulator, write_files
from tests.harness import Servetop, opened, received, wait_for

pytestmark = pytest.mark.integration

LINES = lines_of(RUNS)
RESUMED = "search --resume latest --headless"
UNMET = "--headless --request-rate 20 --num-prompts 40 --output-len 16 --threshold 'p99_ttft_ms<=1'"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recording of a short run."""
    folder = tmp_path_factory.mktemp("recorded")
    line = "--headless --request-rate 40 --num-prompts 8 --output-len 4 --record RUN.servetop"
    assert_line_ran(line, in_shell(line, folder), folder)
    return folder / "RUN.servetop"


@pytest.mark.parametrize("page", LINES)
def test_the_lines_of_a_page_run(page: str, recorded: Path, tmp_path: Path) -> None:
    write_files(tmp_path)
    (tmp_path / "recordings").mkdir()
    (tmp_path / "results").mkdir()
    for name in ("FILE", "RUN.servetop", "recordings/RUN.servetop"):
        shutil.copy(recorded, tmp_path / name)
    for line in LINES[page]:
        if line == RESUMED:
            _interrupt_a_search(tmp_path)
        line = bounded(with_simulator(line)).replace("/mnt/results", str(tmp_path / "results"))
        line += " --into pairs" if command_of(line) == "run-pairs" else ""
        assert_line_ran(line, in_shell(line, tmp_path), tmp_path)
        shutil.rmtree(tmp_path / "pairs", ignore_errors=True)
        if "--on-finish" in line:
            _wait_for_its_command(line, tmp_path)


def _interrupt_a_search(folder: Path) -> None:
    """Leave the recording of a search that Ctrl-C ended after its first tokens."""
    for path in (folder / "recordings").iterdir():
        path.unlink() if path.is_file() else shutil.rmtree(path)
    search = "search --max-num-seqs 8 --output-len 8 --slo 'ttft<500ms@90%' --budget 10s --headless"
    with Servetop(folder / "recordings").started(*shlex.split(search)) as process:
        path = wait_for(lambda: next((folder / "recordings").glob("*.servetop"), None), seconds=60, what="a recording")
        reader = wait_for(lambda: opened(path), seconds=60, what="its header")
        wait_for(lambda: received(reader), seconds=60, what="the first tokens")
        reader.close()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=300)
    assert process.returncode == 130, err


def _wait_for_its_command(line: str, folder: Path) -> None:
    if "notify.sh" in line:
        assert (folder / "notified").read_text(encoding="utf-8").split()[0] == "nightly"
        return
    copied = wait_for(lambda: next((folder / "results").glob("*.servetop"), None), seconds=60, what="the copy")
    wait_for(lambda: copied.stat().st_size == newest(folder / "recordings").stat().st_size, seconds=10, what="its end")


def test_the_unmet_threshold_of_the_docs_is_unmet(tmp_path: Path) -> None:
    done = in_shell(bounded(UNMET), tmp_path)
    assert done.code == 99
    assert "servetop: p99_ttft_ms<=1: it is " in done.err.splitlines()[-1]
    assert UNMET in [line for lines in LINES.values() for line in lines]
