"""A package with plug-ins, installed for one test as pip leaves it: modules beside their metadata."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest


def install(
    site: Path, monkeypatch: pytest.MonkeyPatch, groups: Mapping[str, Mapping[str, str]], modules: Mapping[str, str]
) -> None:
    """Install a package `servetop-acme 1.0` in a folder; its modules are forgotten after the test."""
    metadata = site / "servetop_acme-1.0.dist-info"
    metadata.mkdir(parents=True, exist_ok=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: servetop-acme\nVersion: 1.0\n", encoding="utf-8")
    lines = [
        line for group, points in groups.items() for line in (f"[{group}]", *(f"{k} = {v}" for k, v in points.items()))
    ]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for name, text in modules.items():
        (site / f"{name}.py").write_text(text, encoding="utf-8")
        monkeypatch.setitem(sys.modules, name, None)  # so that its import is undone
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(site)
    importlib.invalidate_caches()
