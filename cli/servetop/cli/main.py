"""Runs one command line: splits off the arguments of the engine, runs the command, reports errors in one line."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from servetop.cli.framework.command_line import Invocation
from servetop.cli.options.option_names import usage_message
from servetop.core.errors import EngineError, ExitCode, ServetopError, UsageError
from servetop.run import console
from servetop.run.process.resource_limits import exhausted_resource, silence_teardown, unusable_file

if TYPE_CHECKING:
    from servetop.core.text.redaction import Redactor
    from servetop.run.process.first_sender import FirstSender

_LISTS = {"--goodput": re.compile(r"^[a-z0-9]+:[0-9.]+$"), "--lora-modules": re.compile(r"^[^-]")}
"""By option that takes several words: what all but the first look like."""
_COMPLETE = "_SERVETOP_COMPLETE"
"""The environment variable in which a shell asks for completion; `framework.completion` answers."""


def main(
    argv: Sequence[str] | None = None, *, sender: FirstSender | None = None, command: click.Command | None = None
) -> int:
    """Run a command line; return the exit code (see ExitCode).

    `sender` is a sender process that was started early; `command` is the one that the line is for, None for servetop.
    """
    if argv is None:
        sys.excepthook = console.crash
    given = sys.argv[1:] if argv is None else argv
    own, engine_args = split_engine_args(given)
    invocation = Invocation(engine_args=engine_args, sender=sender)
    try:
        _check_text(given)
        return _run(command or _servetop(), joined_lists(own), invocation)
    except ServetopError as error:
        print_error(error, given)
        return int(error.exit_code)
    except click.ClickException as error:
        text = _redactor(given).sentence(usage_message(error, is_file_key=_is_file_key, is_sweep_key=_is_sweep_key))
        _print_reason(f"{text} (see servetop --help)", ExitCode.USAGE, given)
        return int(ExitCode.USAGE)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except KeyboardInterrupt:
        return interrupted(given)
    except Exception as error:
        if not (reason := exhausted_resource(error) or unusable_file(error)):
            raise
        silence_teardown()
        _print_reason(reason, ExitCode.RUN_FAILED, given)
        return int(ExitCode.RUN_FAILED)


def _servetop() -> click.Command:
    from servetop.cli.commands import command_group  # takes longer than one command

    return command_group()


def _run(command: click.Command, words: list[str], invocation: Invocation) -> int:
    if request := os.environ.get(_COMPLETE):
        from servetop.cli.framework.completion import answer_shell

        return answer_shell(command, request)
    with command.make_context("servetop", words, obj=invocation) as context:
        return int(command.invoke(context))


def _check_text(argv: Sequence[str]) -> None:
    """Raise UsageError for an argument that no recording and no request can hold."""
    for word in argv:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise UsageError(f"{word!r} is not UTF-8: rename the file, or type it in a UTF-8 terminal") from None


def split_engine_args(argv: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Return the words before the first `--`, and those after it, which are the engine's own options."""
    if "--" not in argv:
        return list(argv), ()
    at = list(argv).index("--")
    return list(argv[:at]), tuple(argv[at + 1 :])


def joined_lists(argv: Sequence[str]) -> list[str]:
    """Join the values of an option with a list, as vLLM's `--goodput ttft:500 tpot:50`, into one."""
    joined: list[str] = []
    for word in argv:
        option = joined[-2] if len(joined) >= 2 else ""
        if option in _LISTS and _LISTS[option].match(word):
            joined[-1] += f" {word}"
        else:
            joined.append(word)
    return joined


def print_error(error: ServetopError, argv: Sequence[str] = ()) -> None:
    """Print the engine's last log lines and the error to stderr, without the secrets of the command line."""
    redactor = _redactor(argv)
    if isinstance(error, EngineError):
        console.quote(map(redactor.text, error.log_tail))
    _print_reason(redactor.sentence(str(error)), error.exit_code, argv)


def interrupted(argv: Sequence[str]) -> int:
    """Say that a command line was interrupted; return its exit code."""
    _print_reason("interrupted", ExitCode.INTERRUPTED, argv)
    return int(ExitCode.INTERRUPTED)


def _print_reason(reason: str, code: ExitCode, argv: Sequence[str]) -> None:
    """Print an error to stderr, and with --json also to stdout."""
    own, _ = split_engine_args(argv)
    if "--json" in own:
        with contextlib.suppress(ServetopError):  # stdout may be what cannot be written
            console.out_json({"error": reason, "exit_code": int(code)})
    console.message(reason)


def _is_file_key(option: str) -> bool:
    from servetop.cli.options.file_keys import is_file_key  # needed for errors only

    return is_file_key(option)


def _is_sweep_key(option: str) -> bool:
    from servetop.cli.configuration.sweep_file import is_sweep_key  # needed for errors only

    return is_sweep_key(option)


def _redactor(argv: Sequence[str]) -> Redactor:
    from servetop.core.text.known_secrets import redactor_of_command  # needed for errors only

    return redactor_of_command(argv)
