"""`servetop --help` starts quickly and can be read at any width, piped or not."""

from __future__ import annotations

import pytest

from servetop.cli.main import main
from servetop.core.errors import ExitCode
from tests.harness import run_python


def test_help_imports_no_heavy_package() -> None:
    script = (
        "import sys; from servetop.cli.main import main; main(['--help']);"
        "heavy = {'textual', 'numpy', 'httpx', 'plotext', 'rich', 'servetop.core.config'};"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    done = run_python(script)
    assert "--request-rate" in done.stdout
    assert done.stderr.strip() == "[]"


def test_help_lists_every_command_in_full_and_options_by_topic(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    page = capsys.readouterr().out
    topics = [line[:-1] for line in page.splitlines() if line.endswith(":") and line[:1].isalpha()]
    assert topics[:3] == ["Commands", "Engine", "Connection"]
    assert topics[-1] == "Options"
    assert "..." not in page.partition("Commands:")[2].partition("Engine:")[0]
    assert "servetop[web]" in page, "square brackets are text, not markup"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--port", "70000"], "invalid --port 70000: use a whole number from 1 to 65535, or omit it for a free one"),
        (["--port", "http"], "invalid --port http: use a whole number from 1 to 65535, or omit it for a free one"),
        (["--max-num-seqs", "0"], "invalid --max-num-seqs 0: use a whole number of at least 1"),
        (["--burstiness", "x"], "invalid --burstiness x: use a number"),
    ],
)
def test_an_invalid_value_error_states_the_valid_range(
    words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == ExitCode.USAGE
    assert complaint in capsys.readouterr().err


def test_a_command_line_is_read_without_pydantic() -> None:
    script = (
        "import sys; from servetop.cli.main import main;"
        "main(['--engine', 'x', '--url', 'a', '--port', '1', '--json']);"
        "print(sorted({'pydantic', 'rich'} & set(sys.modules)))"
    )
    done = run_python(script)
    assert done.stdout.splitlines()[-1] == "[]"
