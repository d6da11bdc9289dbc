"""Every module can be imported with the versions that are installed, whichever they are."""

from __future__ import annotations

import importlib
import pkgutil

import servetop

PROGRAMS = ("servetop.engines.adapters.servers",)
"""Run by the Python of an engine, which has packages that servetop does not need."""


def test_every_module_of_servetop_can_be_imported() -> None:
    found = [each.name for each in pkgutil.walk_packages(servetop.__path__, "servetop.")]
    modules = [name for name in found if not name.startswith(PROGRAMS) and not name.endswith(".__main__")]
    assert len(modules) > 200
    for name in modules:
        importlib.import_module(name)
