"""The environment of all tests and of the processes that they start: the same on every machine."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import time
from collections.abc import Mapping, MutableMapping
from pathlib import Path

MACHINE: Mapping[str, str] = dict(os.environ)
"""The variables with which this process was started: for programs that reach the network, and for GPUs."""
KEPT = frozenset({
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "LD_LIBRARY_PATH", "XDG_RUNTIME_DIR",
    "CI", "SERVETOP_INTEGRATION", "SERVETOP_INTEGRATION_STRICT",
})  # fmt: skip
"""Variables that the tests or the programs that they start need; servetop reads none of them but PATH and HOME."""
OF_THE_PROCESSOR = frozenset({"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"})
"""Set where the OpenBLAS of the lowest NumPy would compute wrong results or crash. servetop records them: see
`without_processor_settings` in tests/conftest.py."""
KEPT_PREFIXES = ("PYTEST_", "TEXTUAL_SNAPSHOT_", "COV_", "COVERAGE_")
FIXED = {"TZ": "UTC", "LANG": "C.UTF-8"}
OWN_FOLDERS = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
"""Name folders that servetop reads and writes: the tests must not use those of the user."""


def is_kept(name: str) -> bool:
    """Whether tests see the machine's value of this variable."""
    return name in KEPT | OF_THE_PROCESSOR or name.startswith(KEPT_PREFIXES)


def clean_environment(environ: MutableMapping[str, str], own_folders: Path) -> None:
    """Remove every variable that is not kept, and set those with the same value on every machine."""
    for name in [name for name in environ if not is_kept(name)]:
        del environ[name]
    environ.update(FIXED | {name: str(own_folders / name.lower()) for name in OWN_FOLDERS})


def clean_this_process() -> None:
    """Give this process, and all that it starts, the environment of the tests."""
    folder = tempfile.mkdtemp(prefix="servetop-tests-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    clean_environment(os.environ, Path(folder))
    time.tzset()
