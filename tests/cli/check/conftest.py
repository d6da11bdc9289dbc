"""Fixtures of the tests of `servetop check`."""

from pathlib import Path

import pytest

from tests.cli.check.checking import Check


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recordings")


@pytest.fixture
def check(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Check:
    monkeypatch.setenv("SERVETOP_RECORDINGS", str(tmp_path))
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    return Check(capsys)
