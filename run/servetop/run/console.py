"""The way out to the terminal: what the command line prints on stdout and stderr is sanitized here, and nowhere else.

Ruff forbids other writes (`banned-api` in pyproject.toml). Tables have a module of their own, `tables`, for only they
need Rich.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, TextIO

from servetop.core.errors import ServetopError
from servetop.core.text.sanitize import sanitize_line, sanitize_log_line, sanitize_text


def out(*lines: str) -> None:
    """Lines on stdout; a line break within one is a space: whose text it is cannot begin a line."""
    write(sys.stdout, "".join(f"{sanitize_line(line)}\n" for line in lines))


def out_json(value: object, *, indent: int | None = None, default: Any = None) -> None:
    """JSON on stdout, all of it printable ASCII: whatever else a text holds is escaped, and nothing is lost.

    A number that JSON has no word for is null: one such figure must not cost all the others.
    """
    import json

    told = _finite(value)
    write(sys.stdout, json.dumps(told, allow_nan=False, ensure_ascii=True, indent=indent, default=default) + "\n")


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if value - value == 0 else None  # infinity and NaN less themselves are NaN
    if isinstance(value, Mapping):
        return {str(key): _finite(each) for key, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list | tuple) else value


def message(text: str) -> None:
    """One line on stderr behind servetop's name: what is wrong or happens now, and what to do."""
    write(sys.stderr, f"servetop: {sanitize_line(text)}\n")


def status(text: str) -> None:
    """One line on stderr as it is: how far a run is."""
    write(sys.stderr, sanitize_line(text) + "\n")


def quote(lines: Iterable[str]) -> None:
    """Lines of another program's output on stderr, each behind a bar."""
    write(sys.stderr, "".join(f"  │ {sanitize_log_line(line)}\n" for line in lines))


def crash(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
    """The traceback of an error that nothing caught (`sys.excepthook`): its words may come from anywhere."""
    import traceback

    from servetop.core.text.known_secrets import redactor_of_command

    text = "".join(traceback.format_exception(kind, error, where))
    write(sys.stderr, sanitize_text(redactor_of_command(sys.argv[1:]).text(text)))


def is_terminal() -> bool:
    """A person sits before both ends: keys come in, and what goes out is seen."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


def shows_status() -> bool:
    """Stderr is a terminal, on which a line can be drawn again."""
    return sys.stderr is not None and sys.stderr.isatty()


def encoding() -> str:
    """Stdout's."""
    return getattr(sys.stdout, "encoding", None) or "unknown"


def write(stream: TextIO | None, text: str) -> None:
    """Write sanitized text at once. Whoever has stopped reading is no error; a full disk is, where it takes the result.

    What the stream's encoding lacks is escaped; a stream that was closed before the start (`>&-`) takes nothing.
    """
    if stream is None:
        return
    try:
        try:
            stream.write(text)
        except UnicodeEncodeError:
            stream.write(text.encode(stream.encoding, "backslashreplace").decode(stream.encoding))
        stream.flush()
    except BrokenPipeError:
        _discard(stream)
    except OSError as error:
        _discard(stream)
        if stream is sys.stdout:
            raise ServetopError(
                f"cannot write to standard output ({(error.strerror or str(error)).lower()})"
            ) from error


def _discard(stream: TextIO) -> None:
    """Nothing more gets there, also not what Python writes when it ends."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
