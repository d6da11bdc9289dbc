"""The versions and host facts that a recording stores."""

import os
import platform
import sys
from importlib import metadata
from pathlib import Path

import pytest

from servetop.run.manifest.versions import PACKAGES, host_facts, servetop_version, versions


def test_versions_name_python_and_every_measured_package() -> None:
    found = versions()
    assert set(found) == {"python", *PACKAGES}
    assert found["python"] == platform.python_version()


@pytest.mark.parametrize("package", ["numpy", "httpx"])
def test_versions_agree_with_the_installed_metadata(package: str) -> None:
    assert versions()[package] == metadata.version(package)


def test_the_first_folder_of_the_import_path_decides_the_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, version in (("first", "9.1"), ("second", "9.2")):
        (tmp_path / folder / f"servetop-{version}.dist-info").mkdir(parents=True)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "first"), str(tmp_path / "second")])
    assert servetop_version() == "9.1"


def test_a_folder_of_another_package_with_a_longer_name_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pytest_servetop-9.9.dist-info").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert servetop_version() == "unknown"


def test_missing_folders_of_the_import_path_are_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "servetop-9.3.dist-info").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "absent"), str(tmp_path)])
    assert servetop_version() == "9.3"


def test_host_facts_describe_this_machine() -> None:
    facts = host_facts()
    assert facts["processors"] == os.cpu_count()
    assert facts["name"] == platform.node()
    assert facts["memory"] > 0
