"""The site of the docs is built without a warning by both of its builders, and loads nothing from a network."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.clean_environment import MACHINE

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
INSTALL = ("bash", "tests/corpus/peers/install.sh", "site")
BUILD = {"mkdocs": ("build", "--strict"), "zensical": ("build", "--strict")}
LOADED = re.compile(r"""<(?:script|img|iframe|source)[^>]*\ssrc=["']?(?:https?:)?//|<link[^>]*stylesheet[^>]*//""")


@pytest.mark.parametrize("builder", BUILD)
def test_the_site_is_built_without_a_warning_and_loads_nothing(builder: str, tmp_path: Path) -> None:
    made = subprocess.run(INSTALL, cwd=ROOT, check=True, capture_output=True, text=True)
    programs = Path(made.stdout.split()[-1]) / "bin"
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    done = subprocess.run(
        [programs / builder, *BUILD[builder]], cwd=tmp_path, env=MACHINE, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) >= len(list((ROOT / "docs").rglob("*.md")))
    loading = [page.name for page in pages if LOADED.search(page.read_text(encoding="utf-8"))]
    assert loading == []
