"""An exhausted resource limit is reported in one line."""

from __future__ import annotations

import errno
import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from servetop.cli import main
from servetop.run.process.resource_limits import exhausted_resource, unusable_file
from tests.harness import run_python


def raised_from(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


def raised_while(error: Exception, context: Exception) -> Exception:
    error.__context__ = context
    return error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(), "out of memory"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "out of memory"),
        (OSError(errno.EMFILE, "Too many open files", "pynvml.py"), "too many open files"),
        (RuntimeError("can't start new thread"), "cannot start more threads"),
        (ImportError("libx.so: failed to map segment from shared object"), "out of memory"),
        (ImportError("libx.so: cannot open shared object file: Too many open files"), "too many open files"),
        (raised_from(ImportError("for many reasons"), MemoryError()), "out of memory"),
        (raised_while(RuntimeError("loop runs"), OSError(errno.EMFILE, "Too many open files")), "too many open files"),
    ],
)
def test_an_exhausted_resource_is_one_line_and_exit_code_1(
    error: Exception, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def short(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("servetop.cli.inspection.recordings_list.print_recordings", short)
    assert main.main(["ls"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("servetop: ")
    assert words in line


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("a bug"),
        FileNotFoundError(errno.ENOENT, "No such file"),
        ValueError(),
        ImportError("No module named 'x'"),
        raised_while(RuntimeError("a"), raised_while(ValueError("b"), KeyError("c"))),
    ],
)
def test_other_errors_are_not_exhausted_resources(error: Exception) -> None:
    assert exhausted_resource(error) == ""


def test_ctrl_c_is_handled_before_heavy_imports() -> None:
    code = "import servetop.cli.entry, sys; print([m for m in sys.modules if m.startswith('servetop.')])"
    done = run_python(code)
    assert done.stdout.strip() == "['servetop.cli', 'servetop.cli.entry']"


@pytest.mark.parametrize(
    ("limit", "words"), [(resource.RLIMIT_NOFILE, "a run needs 64 open"), (resource.RLIMIT_AS, "a run needs 512 MiB")]
)
def test_a_run_with_too_low_limits_is_an_error_before_anything_is_sent(limit: int, words: str, tmp_path: Path) -> None:
    file = tmp_path / "run.servetop"
    argv = [sys.executable, "-m", "servetop", "--headless", "--json", "--num-prompts", "5", "--record", str(file)]
    low = {resource.RLIMIT_NOFILE: 40, resource.RLIMIT_AS: 500 << 20}[limit]
    done = subprocess.run(
        argv, capture_output=True, text=True, check=False, preexec_fn=lambda: resource.setrlimit(limit, (low, low))
    )
    assert (done.returncode, file.exists()) == (1, False)
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"servetop: {words}")
    assert json.loads(done.stdout)["exit_code"] == 1


def test_a_low_soft_limit_of_open_files_is_raised() -> None:
    code = (
        "import resource; from servetop.run.process.resource_limits import check_limits\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (20, 1000)); check_limits()\n"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE))"
    )
    done = run_python(code)
    assert done.stdout.strip() == "(64, 1000)"


def test_objects_destroyed_at_the_end_print_nothing() -> None:
    code = (
        "import asyncio, warnings\nfrom servetop.run.process.resource_limits import silence_teardown\n"
        "class Torn:\n    def __del__(self): raise ValueError\n"
        "async def wait(): await asyncio.sleep(9)\n"
        "loop = asyncio.new_event_loop(); loop.create_task(wait()); wait(); torn = Torn(); silence_teardown()\n"
        "del torn, loop\nimport gc; gc.collect(); warnings.warn('late')"
    )
    done = run_python(code)
    assert "destroyed" not in done.stderr
    assert "late" not in done.stderr
    assert "ValueError" not in done.stderr


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (PermissionError(errno.EACCES, "Permission denied", "/a/b"), "cannot use /a/b (permission denied): check"),
        (
            OSError(errno.ENAMETOOLONG, "File name too long", b"/a/\xff"),
            "cannot use /a/\udcff (file name too long): check",
        ),
        (OSError(errno.ENOSPC, "No space left on device"), "cannot write (no space left on device): free"),
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"), ""),
        (OSError(errno.EBADF, "Bad file descriptor"), ""),
        (ValueError("no file"), ""),
    ],
)
def test_an_unusable_file_is_named_with_the_reason(error: Exception, words: str) -> None:
    found = unusable_file(error)
    assert (found[: len(words)], found == "") == (words, words == "")
