"""No test sees what the machine says in an environment variable that servetop, or what it is built of, reads."""

from __future__ import annotations

import os
import time
from pathlib import Path

from servetop.run.manifest.engine_variables import NAMES, PREFIXES, engine_variables
from tests.clean_environment import FIXED, KEPT, OF_THE_PROCESSOR, OWN_FOLDERS, clean_environment, is_kept
from tests.harness import run_python
from tests.hostile_environment import hostile_variables
from tests.house.variable_names import variable_names


def test_the_names_in_the_source_include_each_way_to_read_a_variable() -> None:
    by_subscript, by_get, by_constant, by_loop, recorded = (
        "HF_HOME", "NO_COLOR", "SERVETOP_PROFILES", "REDUCE_MOTION", "LD_PRELOAD",
    )  # fmt: skip
    assert {by_subscript, by_get, by_constant, by_loop, recorded, "all_proxy", "OPENBLAS_"} <= set(variable_names())


def test_no_variable_that_the_product_reads_is_kept() -> None:
    assert [name for name in variable_names() if is_kept(name)] == ["PATH"]
    assert [name for name in NAMES if is_kept(name)] == []
    assert [prefix for prefix in PREFIXES if prefix.startswith(tuple(KEPT)) or is_kept(f"{prefix}ODD")] == []


def test_only_what_is_kept_remains_of_a_hostile_environment(tmp_path: Path) -> None:
    environ = {**hostile_variables(), "PATH": "/bin", "OPENBLAS_NUM_THREADS": "2"}
    clean_environment(environ, tmp_path)
    assert environ == {"PATH": "/bin", **FIXED, **{name: str(tmp_path / name.lower()) for name in OWN_FOLDERS}}


def test_this_process_has_no_odd_value() -> None:
    assert [name for name, odd in hostile_variables().items() if os.environ.get(name) == odd] == []


def test_the_processes_of_the_tests_record_no_variable_of_the_machine() -> None:
    code = (
        "import os\n"
        f"for name in {sorted(OF_THE_PROCESSOR)}: os.environ.pop(name, None)\n"
        "from servetop.run.manifest.engine_variables import engine_variables\n"
        "print(engine_variables(os.environ))\n"
    )
    assert run_python(code).stdout == f"{engine_variables({})}\n"


def test_local_time_is_the_same_on_every_machine() -> None:
    assert time.strftime("%Z", time.localtime(0)) == "UTC"
