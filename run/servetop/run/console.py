"""Writes sanitized text to stdout and stderr; the only module that may (`banned-api` in pyproject.toml).

Tables are in `servetop.cli.tables`, because only they need Rich.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, TextIO

from servetop.core.errors import ServetopError, system_reason
from servetop.core.text.sanitize import break_ci_commands, sanitize_line, sanitize_log_line, sanitize_text


def out(*lines: str) -> None:
    """Write lines to stdout; a line break within a line becomes a space, so that untrusted text cannot start a line."""
    write(sys.stdout, "".join(f"{sanitize_line(line)}\n" for line in lines))


def out_fields(*rows: Sequence[str]) -> None:
    """Write lines of fields to stdout, with tabs between them."""
    write(sys.stdout, "".join("\t".join(map(sanitize_line, fields)) + "\n" for fields in rows))


def out_commands(*lines: str) -> None:
    """Write commands to a CI runner, such as annotations; the caller escapes the untrusted text in them."""
    _write(sys.stdout, "".join(f"{sanitize_line(line)}\n" for line in lines))


def out_data(parts: Iterable[str]) -> None:
    """Write the contents of a file to stdout: unchanged into a pipe or file, sanitized to a terminal.

    Ends quietly, without reading the remaining parts, when the other end of the pipe is closed.
    """
    shown = sys.stdout is not None and sys.stdout.isatty()
    for part in parts:
        if not _write(sys.stdout, break_ci_commands(sanitize_text(part)) if shown else part):
            return


def out_json(value: object, *, indent: int | None = None, default: Any = None) -> None:
    """Write JSON to stdout in printable ASCII, with all other characters escaped.

    Infinity and NaN, which JSON does not have, become null.
    """
    import json

    text = json.dumps(_finite(value), allow_nan=False, ensure_ascii=True, indent=indent, default=default)
    _write(sys.stdout, text.replace("##", "#\\u0023") + "\n")  # no CI runner finds a command in a value


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if value - value == 0 else None  # infinity and NaN less themselves are NaN
    if isinstance(value, Mapping):
        return {str(key): _finite(each) for key, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list | tuple) else value


def page(text: str) -> None:
    """Write servetop's own text to stdout, with its bold headings if that is a terminal."""
    shown = sys.stdout is not None and sys.stdout.isatty()
    write(sys.stdout, (text if shown else sanitize_text(text)).rstrip() + "\n")


def message(text: str) -> None:
    """Write one line to stderr, prefixed with `servetop: `: an error and what to do, or a notice."""
    write(sys.stderr, f"servetop: {sanitize_line(text)}\n")


def status(text: str) -> None:
    """Write one line to stderr without a prefix, such as the progress of a run."""
    write(sys.stderr, sanitize_line(text) + "\n")


def quote(lines: Iterable[str]) -> None:
    """Write lines of another program's output to stderr, each after a bar."""
    write(sys.stderr, "".join(f"  │ {sanitize_log_line(line)}\n" for line in lines))


def crash(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
    """Write the traceback of an uncaught error (`sys.excepthook`), whose text is untrusted."""
    import traceback

    from servetop.core.text.known_secrets import redactor_of_command

    text = "".join(traceback.format_exception(kind, error, where))
    write(sys.stderr, sanitize_text(redactor_of_command(sys.argv[1:]).text(text)))


def is_terminal() -> bool:
    """Whether both stdin and stdout are a terminal."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


def shows_status() -> bool:
    """Whether stderr is a terminal, so that a line can be redrawn."""
    return sys.stderr is not None and sys.stderr.isatty()


def encoding() -> str:
    """Return the encoding of stdout."""
    return getattr(sys.stdout, "encoding", None) or "unknown"


def write(stream: TextIO | None, text: str) -> None:
    """Write sanitized text without commands to a CI runner, and flush.

    A closed pipe is ignored; any other error on stdout is a ServetopError. Characters that the encoding lacks are
    escaped; a stream that was closed at the start (`>&-`) is skipped.
    """
    _write(stream, break_ci_commands(text))


def _write(stream: TextIO | None, text: str) -> bool:
    """Write text as it is, and flush; False if the stream is closed."""
    if stream is None:
        return False
    try:
        try:
            stream.write(text)
        except UnicodeEncodeError:
            stream.write(text.encode(stream.encoding, "backslashreplace").decode(stream.encoding))
        stream.flush()
        return True
    except BrokenPipeError:
        _discard(stream)
    except OSError as error:
        _discard(stream)
        if stream is sys.stdout:
            raise ServetopError(f"cannot write to standard output ({system_reason(error)})") from error
    return False


def _discard(stream: TextIO) -> None:
    """Redirect the stream to /dev/null, so that Python does not write to it at exit either."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
