"""`servetop --help` starts quickly and can be read at any width, piped or not."""

from __future__ import annotations

import pytest

from servetop.cli.commands import COMMANDS
from servetop.cli.framework.command_line import help_of
from servetop.cli.main import main
from servetop.cli.option_reference import option_reference
from servetop.cli.options.declaration import Declared, Option, declared
from servetop.cli.options.run_options import RunOptions
from servetop.core.errors import ExitCode
from tests.harness import run_python


def test_help_imports_no_heavy_package() -> None:
    script = (
        "import sys; from servetop.cli.main import main; main(['--help-all']);"
        "heavy = {'textual', 'numpy', 'httpx', 'plotext', 'rich', 'servetop.core.config'};"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    done = run_python(script)
    assert "--request-rate" in done.stdout
    assert done.stderr.strip() == "[]"


def test_help_lists_every_command_in_full_and_options_by_topic(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help-all"]) == 0
    page = capsys.readouterr().out
    topics = [line[:-1] for line in page.splitlines() if line.endswith(":") and line[:1].isalpha()]
    assert topics[:3] == ["Commands", "Engine", "Connection"]
    assert topics[-1] == "Options"
    assert "..." not in page.partition("Commands:")[2].partition("Engine:")[0]
    assert "servetop[web]" in page, "square brackets are text, not markup"


HELP_PAGES = {"": RunOptions} | {each.name: each.options for each in COMMANDS}
REFUSED = {each.name: each.refused for each in COMMANDS}


def listed(command: str) -> list[Declared]:
    """The options and arguments of a command, without those that it refuses."""
    return [each for each in declared(HELP_PAGES[command]) if each.name not in REFUSED.get(command, ())]


@pytest.mark.parametrize("columns", [60, 80, 160])
@pytest.mark.parametrize("command", HELP_PAGES)
def test_a_help_page_has_every_name_and_text_in_full(
    command: str, columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main([*command.split(), "--help-all"]) == 0
    page = capsys.readouterr().out
    assert max(map(len, page.splitlines())) <= columns
    assert "<str>" not in page
    unwrapped = "".join(page.split())  # without the spaces: a line may be broken at a hyphen
    for each in listed(command):
        text = help_of(each) if isinstance(each.form, Option) else each.form.help
        assert "".join(text.split()) in unwrapped
        names = each.form.names.replace("/", " ").split() if isinstance(each.form, Option) else [each.form.metavar]
        words = page.replace(",", " ").split()
        assert [name for name in names if name not in words] == []


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--port", "70000"], "invalid --port 70000: use a whole number from 1 to 65535; without it: a free one"),
        (["--port", "http"], "invalid --port http: use a whole number from 1 to 65535; without it: a free one"),
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


@pytest.mark.parametrize("command", ["", *(each.name for each in COMMANDS)])
def test_the_usual_page_is_short_and_names_the_whole_one(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*command.split(), "--help"]) == 0
    page = capsys.readouterr().out
    assert len(page.splitlines()) <= (40 if not command else 45)
    assert max(map(len, page.splitlines())) <= 80
    assert "--help" in page


@pytest.mark.parametrize("command", [each.name for each in COMMANDS])
def test_the_usual_page_has_all_of_few_options_or_the_common_ones_in_a_line_each(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([command, "--help"]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    options = [(each, each.form) for each in listed(command) if isinstance(each.form, Option)]
    if len(options) <= 15:
        assert any(line.startswith("-h, --help") for line in lines)
        return
    assert lines[-1] == f"--help-all shows all {len(options)} options."
    shown = [line.partition("  ")[0].split()[0] for line in lines if line.startswith("--") and line != lines[-1]]
    assert shown == [each.spelling for each, form in options if form.brief]


def test_the_usual_page_lists_the_commands_and_few_options_of_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-h"]) == 0
    page = capsys.readouterr().out
    assert [each.name for each in COMMANDS if each.name not in page] == []
    assert "--request-rate REQUESTS/S" in page
    assert "--burstiness" not in page


@pytest.mark.parametrize("page", ["--help", "--help-all"])
@pytest.mark.parametrize(("command", "own"), [("search", "--low"), ("watch", "--keep")])
def test_no_page_of_a_command_has_an_option_that_it_refuses(
    command: str, own: str, page: str, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = [each.spelling for each in declared(HELP_PAGES[command]) if each.name in REFUSED[command]]
    assert len(refused) == len(REFUSED[command]) > 0
    assert main([command, page]) == 0
    words = capsys.readouterr().out.split()
    assert [name for name in refused if name in words] == []
    assert own in words or page == "--help"


def test_what_a_watch_refuses_is_in_no_list_of_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    of_watches = option_reference().partition("### servetop watch\n")[2].partition("### ")[0]
    assert "`--keep`" in of_watches
    assert "`--against`" not in of_watches
    assert main(["watch", "--help-all"]) == 0
    assert "of the run" not in " ".join(capsys.readouterr().out.split())


def test_a_refused_option_has_a_message_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("--request-rate", "--num-prompts", "--cooldown"):
        assert main(["search", "--slo", "p99_ttft<500ms", option, "8"]) == ExitCode.USAGE
        assert f"{option}: the search chooses the load" in capsys.readouterr().err
