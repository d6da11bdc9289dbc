"""Shell completion."""

from __future__ import annotations

from pathlib import Path

import pytest

from servetop.cli.main import main
from servetop.cli.options import completions
from tests.harness import run_python


def offered(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: str) -> list[str]:
    """The words that bash would offer for the last of these."""
    monkeypatch.setenv("_SERVETOP_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    with pytest.raises(SystemExit, match="0"):  # as the shell's hook ends
        main([])
    return capsys.readouterr().out.split()


@pytest.mark.parametrize(
    ("words", "some"),
    [
        ("servetop --engine v", ["vllm"]),
        ("servetop sweep whitepaper-1", ["whitepaper-1-tensorrt-llm", "whitepaper-1-vllm"]),
        ("servetop sweep grid --ex", ["--example"]),
        ("servetop predict --preset whitepaper-2", ["whitepaper-2"]),
        ("servetop predict --gpu a100", ["a100-40", "a100-80"]),
        ("servetop --dataset-name son", ["sonnet"]),
        ("servetop --endpoint ch", ["chat"]),
        ("servetop --theme mo", ["mono"]),
        ("servetop engines tg", ["tgi"]),
        ("servetop --model llama-2-7", ["llama-2-70b", "llama-2-7b"]),
        ("servetop serve --gp", ["--gpu"]),
        ("servetop serve --gpu a100", ["a100-40", "a100-80"]),
    ],
)
def test_names_are_completed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: str, some: list[str]
) -> None:
    assert offered(monkeypatch, capsys, words) == some


def test_recordings_are_offered_by_name_and_by_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "recordings"
    folder.mkdir()
    for name in ("one.servetop", "two.servetop", "two.servetop-wal"):
        (folder / name).touch()
    monkeypatch.setenv("SERVETOP_RECORDINGS", str(folder))
    assert completions.recordings("")[:4] == ["latest", "two", "one", "sample"]
    assert completions.recordings(f"{folder}/t") == [f"{folder}/two.servetop"]
    (tmp_path / "run.toml").touch()
    assert completions.configs(f"{tmp_path}/r") == [f"{tmp_path}/recordings/", f"{tmp_path}/run.toml"]
    assert completions.sweeps(f"{tmp_path}/nowhere/r") == []


def test_completion_imports_neither_textual_nor_the_simulator() -> None:
    script = (
        "import contextlib, sys\nfrom servetop.cli.main import main\nwith contextlib.suppress(SystemExit): main([])\n"
        "print(sorted({'textual', 'rich', 'servetop.simulator.serve'} & set(sys.modules)))"
    )
    environment = {
        "_SERVETOP_COMPLETE": "complete_bash", "COMP_WORDS": "servetop sweep w", "COMP_CWORD": "2",
    }  # fmt: skip
    done = run_python(script, environment)
    assert done.stdout.splitlines()[-1] == "[]"
