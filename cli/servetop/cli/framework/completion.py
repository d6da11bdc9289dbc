"""Completion for shells: the words that continue a command line, and the scripts with which a shell asks for them.

A script sets COMPLETE to `complete_SHELL` and starts servetop. Its variables keep the names that scripts installed by
earlier versions use.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from servetop.core.errors import ServetopError, UsageError
from servetop.run import console

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMPLETE = "_SERVETOP_COMPLETE"
"""The environment variable in which a shell asks."""
_LINE, _WORD = "_TYPER_COMPLETE_ARGS", "_TYPER_COMPLETE_WORD_TO_COMPLETE"
_ACTION = "_TYPER_COMPLETE_FISH_ACTION"
_SCRIPTS = Path(__file__).with_name("completion_scripts")


def answer_shell(group: click.Command, request: str) -> int:
    """Print what a shell asks for: `complete_SHELL` or `source_SHELL`. Returns the exit code."""
    what, _, name = request.partition("_")
    if name not in _SHELLS or what not in ("complete", "source"):
        raise UsageError(f"{COMPLETE}={request}: use complete_SHELL or source_SHELL with {', '.join(_SHELLS)}")
    shell = _SHELLS[name]
    if what == "source":
        console.page(shell.script())
        return 0
    from click.shell_completion import ShellComplete  # only here

    words, incomplete = shell.words()
    items = ShellComplete(group, {}, "servetop", COMPLETE).get_completions(words, incomplete)
    if os.environ.get(_ACTION) == "is-args":
        return 0 if items else 1
    rows = [shell.row(each) for each in items] or [(shell.nothing,)]
    if items:
        rows[0] = (shell.around[0] + rows[0][0], *rows[0][1:])
        rows[-1] = (*rows[-1][:-1], rows[-1][-1] + shell.around[1])
    console.out_fields(*rows)
    return 0


def completion_options() -> list[click.Option]:
    """`--install-completion` and `--show-completion`."""
    return [
        _option("--install-completion", "Install completion for the current shell.", install_completion),
        _option(
            "--show-completion",
            "Show completion for the current shell, to copy it or customize the installation.",
            lambda shell: console.page(_SHELLS[shell].script()),
        ),
    ]


def _option(name: str, text: str, act: Callable[[str], None]) -> click.Option:
    def call(context: click.Context, _: click.Parameter, given: bool) -> None:
        if given and not context.resilient_parsing:
            act(_current_shell())
            context.exit()

    return click.Option([name], is_flag=True, expose_value=False, help=text, callback=call)


def _current_shell() -> str:
    import psutil

    for process in psutil.Process().parents():
        name = str(process.name()).lstrip("-").removesuffix(".exe").lower()
        if name in _SHELLS:
            return name
    raise ServetopError(f"no shell that can complete started this process: use {', '.join(_SHELLS)}")


def install_completion(shell: str) -> None:
    """Write the script of a shell where it reads it; ServetopError for PowerShell, whose file only it knows."""
    home, script = Path.home(), _SHELLS[shell].script()
    if shell == "bash":
        file = home / ".bash_completions" / "servetop.sh"
        _add_line(home / ".bashrc", f"source '{file}'")
    elif shell == "zsh":
        file = home / ".zfunc" / "_servetop"
        _add_line(home / ".zshrc", "fpath+=~/.zfunc; autoload -Uz compinit; compinit")
    elif shell == "fish":
        file = home / ".config" / "fish" / "completions" / "servetop.fish"
    else:
        raise ServetopError("add what servetop --show-completion prints to the file that $PROFILE names")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{script}\n", encoding="utf-8")
    console.out(f"{shell} completion installed in {file}")
    console.out("Completion will take effect once you restart the terminal")


def _add_line(file: Path, line: str) -> None:
    """Append a line to a start-up file, unless it is there."""
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    if line not in text:
        with file.open("a", encoding="utf-8") as stream:
            stream.write(f"\n{line}\n")


def _split(line: str) -> list[str]:
    from click.shell_completion import split_arg_string

    return split_arg_string(line)


def _bash_words() -> tuple[list[str], str]:
    words, at = _split(os.environ["COMP_WORDS"]), int(os.environ["COMP_CWORD"])
    return words[1:at], words[at] if at < len(words) else ""


def _line_words() -> tuple[list[str], str]:
    line = os.environ.get(_LINE, "")
    words = _split(line)[1:]
    return (words[:-1], words[-1]) if words and not line.endswith(" ") else (words, "")


def _powershell_words() -> tuple[list[str], str]:
    words, incomplete = _split(os.environ.get(_LINE, ""))[1:], os.environ.get(_WORD, "")
    return words[:-1] if incomplete else words, incomplete


def _value(item: CompletionItem) -> tuple[str, ...]:
    return (item.value,)


def _value_and_help(item: CompletionItem) -> tuple[str, ...]:
    return (item.value, item.help) if item.help else (item.value,)


def _powershell_item(item: CompletionItem) -> tuple[str, ...]:
    return (f"{item.value}:::{item.help or ' '}",)


def _zsh_item(item: CompletionItem) -> tuple[str, ...]:
    def quoted(text: str) -> str:
        for plain, escaped in (('"', '""'), ("'", "''"), ("$", "\\$"), ("`", "\\`"), (":", "\\\\:")):
            text = text.replace(plain, escaped)
        return f'"{text}"'

    return (":".join(map(quoted, _value_and_help(item))),)


@dataclass(frozen=True, slots=True)
class _Shell:
    suffix: str
    """Of the script."""
    words: Callable[[], tuple[list[str], str]]
    """Returns the complete words after the first, and the incomplete one."""
    row: Callable[[CompletionItem], tuple[str, ...]]
    """Returns the fields of a line."""
    around: tuple[str, str] = ("", "")
    """What precedes the first line and follows the last."""
    nothing: str = ""
    """The answer if there is no completion."""

    def script(self) -> str:
        return (_SCRIPTS / f"servetop.{self.suffix}").read_text(encoding="utf-8").rstrip()


_POWERSHELL = _Shell("ps1", _powershell_words, _powershell_item)
_SHELLS = {
    "bash": _Shell("bash", _bash_words, _value),
    "zsh": _Shell("zsh", _line_words, _zsh_item, around=("_arguments '*: :((", "))'"), nothing="_files"),
    "fish": _Shell("fish", _line_words, _value_and_help),
    "powershell": _POWERSHELL,
    "pwsh": _POWERSHELL,
}
