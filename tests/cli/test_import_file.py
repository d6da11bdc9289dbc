"""`servetop import` writes recordings that other commands read, and says what it could not carry."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from servetop.cli.main import main
from servetop.cli.options.tool_options import IMPORT_FORMATS
from servetop.run.imports.result_file import FORMATS

RESULTS = Path(__file__).parents[1] / "corpus" / "results"
RATE, CLOSED = (RESULTS / f"vllm-{name}.json" for name in ("rate", "closed-loop"))


@pytest.fixture
def recording(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    target = tmp_path / "run.servetop"
    assert main(["import", str(RATE), "-o", str(target)]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"{target}\n"
    assert printed.err == "servetop: not carried: generated_texts\n"
    return target


def test_the_options_name_every_format() -> None:
    assert tuple(FORMATS) == IMPORT_FORMATS


def test_the_summary_says_that_the_run_was_imported(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["summary", str(recording)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "vllm · llama-2-7b (imported)" in lines
    assert "imported   from vLLM bench, vllm-rate.json" in lines
    assert "trust      unknown: nothing of the client was compared; nothing of the engine was compared" in lines


def test_the_manifest_has_what_the_file_says_and_nothing_else(
    recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["manifest", str(recording), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["manifest"]["imported"]["file"]["name"] == "vllm-rate.json"
    assert found["manifest"]["imported"]["file"]["size"] == RATE.stat().st_size
    assert found["keys"] == {
        "imported.tool": "vLLM bench", "workload.endpoint": "completions", "workload.burstiness": "1",
        "model.name": "llama-2-7b",
    }  # fmt: skip
    assert found["host"] == {}
    assert main(["manifest", str(recording)]) == 0
    assert "  imported from  vLLM bench, vllm-rate.json" in capsys.readouterr().out.splitlines()


def test_a_report_says_it_too_and_does_not_offer_to_repeat_the_run(recording: Path, tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    assert main(["report", str(recording), "-o", str(target)]) == 0
    page = target.read_text(encoding="utf-8")
    assert "imported from vLLM bench, vllm-rate.json" in page
    assert "not in the imported file" in page
    assert "servetop rerun" not in page


def test_it_cannot_be_repeated(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rerun", str(recording)]) == 2
    assert capsys.readouterr().err == (
        "servetop: run was imported from vLLM bench, vllm-rate.json: repeat it with that tool\n"
    )


def test_two_imports_are_compared(recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.servetop"
    assert main(["import", str(RATE), "--format", "vllm", "-o", str(other)]) == 0
    assert main(["compare", str(recording), str(other)]) == 0
    assert "TTFT" in capsys.readouterr().out


def test_several_files_become_a_recording_each_in_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SERVETOP_RECORDINGS", str(tmp_path))
    assert main(["import", str(RATE), str(CLOSED)]) == 0
    printed = capsys.readouterr()
    assert sorted(printed.out.splitlines()) == sorted(str(each) for each in tmp_path.glob("*.servetop"))
    assert len(printed.out.splitlines()) == 2
    assert "queue_times (a request of a closed loop is due when it is sent)" in printed.err


def test_each_run_of_a_file_is_a_recording_and_one_name_is_not_enough_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("two.jsonl").write_text(2 * (RESULTS / "sglang-rate.jsonl").read_text(encoding="utf-8"), encoding="utf-8")
    assert main(["import", "two.jsonl", "-o", "run.servetop"]) == 2
    assert capsys.readouterr().err == ("servetop: -o names one recording, and two.jsonl has 2 runs: leave it out\n")
    assert main(["import", "two.jsonl"]) == 0
    printed = capsys.readouterr()
    paths = printed.out.split()
    assert len(set(paths)) == 2
    assert all(Path(each).exists() for each in paths)
    assert printed.err.count("the file has no times of sending") == 1


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ([], "servetop: "),
        (
            [str(RATE), "--format", "xml"],
            "servetop: invalid --format xml: use vllm, aiperf, sglang, guidellm, inference-perf, llmperf or genai-perf",
        ),
        ([str(RATE), "-o", "x.json"], "servetop: -o x.json is no recording by its suffix: give a name that ends in"),
        ([str(RATE), str(CLOSED), "-o", "x.servetop"], "servetop: -o names one recording, and several files become"),
        ([str(RATE), "-o", str(RESULTS)], f"servetop: {RESULTS} already exists: remove it, or choose another file"),
        (["nowhere.json"], "servetop: nowhere.json: cannot be read (no such file or directory)"),
        ([__file__], f"servetop: {__file__}: it is not JSON, or cut off"),
    ],
)
def test_what_cannot_be_imported_is_one_line(
    arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(error)
    assert printed.err.count("\n") == 1
