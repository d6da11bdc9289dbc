"""Shell completion."""

from __future__ import annotations

from pathlib import Path

import pytest

from servetop.cli.framework.completion import install_completion
from servetop.cli.main import main
from servetop.cli.options import completions
from tests.harness import run_python


def offered(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: str) -> list[str]:
    """The words that bash would offer for the last of these."""
    monkeypatch.setenv("_SERVETOP_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    assert main([]) == 0
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
        "import sys\nfrom servetop.cli.main import main\nmain([])\n"
        "print(sorted({'textual', 'rich', 'servetop.simulator.serve'} & set(sys.modules)))"
    )
    environment = {
        "_SERVETOP_COMPLETE": "complete_bash", "COMP_WORDS": "servetop sweep w", "COMP_CWORD": "2",
    }  # fmt: skip
    done = run_python(script, environment)
    assert done.stdout.splitlines()[-1] == "[]"


def test_zsh_fish_and_powershell_show_what_an_option_does_in_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "servetop sweep --ag")
    monkeypatch.setenv("_TYPER_COMPLETE_WORD_TO_COMPLETE", "--ag")
    answers = {}
    for shell in ("zsh", "fish", "powershell"):
        monkeypatch.setenv("_SERVETOP_COMPLETE", f"complete_{shell}")
        assert main([]) == 0
        answers[shell] = capsys.readouterr().out
    text = "Recording to compare with on the screen: its lines behind those of the run, and the differences."
    assert answers == {
        "zsh": f"""_arguments '*: :(("--against":"{text.replace(":", chr(92) * 2 + ":")}"))'\n""",
        "fish": f"--against\t{text}\n",
        "powershell": f"--against:::{text}\n",
    }


@pytest.mark.parametrize(("line", "code"), [("servetop --eng", 0), ("servetop nothing", 1)])
def test_fish_learns_whether_there_is_a_completion(line: str, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_SERVETOP_COMPLETE", "complete_fish")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "is-args")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
    assert main([]) == code


@pytest.mark.parametrize("request_", ["source_bash", "source_zsh", "source_fish", "source_powershell"])
def test_a_script_asks_in_the_variables_that_are_read(
    request_: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_SERVETOP_COMPLETE", request_)
    assert main([]) == 0
    script = capsys.readouterr().out
    assert request_.replace("source", "complete") in script
    assert "COMP_WORDS" in script or "_TYPER_COMPLETE_ARGS" in script


def test_a_shell_that_is_not_known_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_SERVETOP_COMPLETE", "complete_tcsh")
    assert main([]) == 2
    assert "bash, zsh, fish, powershell" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("shell", "script", "start_up"),
    [
        ("bash", ".bash_completions/servetop.sh", ".bashrc"),
        ("zsh", ".zfunc/_servetop", ".zshrc"),
        ("fish", ".config/fish/completions/servetop.fish", None),
    ],
)
def test_completion_is_installed_once_and_leaves_the_rest_of_a_start_up_file(
    shell: str, script: str, start_up: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / (start_up or "rc")).write_text("alias x=y\n")
    for _ in range(2):
        install_completion(shell)
    assert f"complete_{shell}" in (tmp_path / script).read_text()
    text = (tmp_path / (start_up or "rc")).read_text()
    assert text.startswith("alias x=y\n")
    assert text.count("servetop.sh" if shell == "bash" else "fpath+=~/.zfunc") == (1 if start_up else 0)
