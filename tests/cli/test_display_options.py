"""Themes, motion and the web page: command line, environment and remembered settings."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from servetop.cli.configuration.web_address import WebAddress
from servetop.cli.options.output_options import DisplayOptions
from servetop.cli.viewing.display_options import (
    check_theme,
    dashboard_options,
    remember_theme,
    remembered_theme,
    wants_less_motion,
)
from servetop.cli.web.web import check_web, viewer_command
from servetop.core.errors import UsageError
from servetop.core.system.own_python import python_argv
from servetop.recordings.library.folder_store import FolderStore
from tests.harness import Servetop


@pytest.fixture(autouse=True)
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("SERVETOP_REDUCED_MOTION", raising=False)
    monkeypatch.delenv("REDUCE_MOTION", raising=False)


def test_the_theme_chosen_last_comes_back_unless_the_command_line_names_one(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    assert dashboard_options(DisplayOptions(), store).theme == ""
    remember_theme("light")
    assert dashboard_options(DisplayOptions(), store).theme == "light"
    assert dashboard_options(DisplayOptions(theme="mono"), store).theme == "mono"


@pytest.mark.parametrize("content", [b"", b"purple\n", b"\xff\xfe\x00", b"light" * 100])
def test_an_invalid_settings_file_is_ignored(content: bytes, tmp_path: Path) -> None:
    remember_theme("dark")
    (tmp_path / "config" / "servetop" / "theme").write_bytes(content)
    assert dashboard_options(DisplayOptions(), FolderStore(tmp_path)).theme == ""


def test_an_unwritable_settings_folder_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))
    remember_theme("light")
    assert remembered_theme() == ""


def test_an_unknown_theme_is_an_error_that_lists_the_themes() -> None:
    with pytest.raises(UsageError, match="invalid theme 'purple': use one of dark, light, contrast, ansi, mono"):
        check_theme("purple")


@pytest.mark.parametrize(
    ("environment", "less"),
    [
        ({}, False),
        ({"REDUCE_MOTION": "1"}, True),
        ({"SERVETOP_REDUCED_MOTION": "true"}, True),
        ({"SERVETOP_REDUCED_MOTION": "0", "REDUCE_MOTION": "No"}, False),
    ],
)
def test_the_environment_can_reduce_motion(environment: dict[str, str], less: bool) -> None:
    assert wants_less_motion(environment) is less


@pytest.mark.parametrize(("steer", "flags"), [(False, ["--read-only"]), (True, [])])
def test_each_page_gets_a_viewer_of_the_one_recording(tmp_path: Path, steer: bool, flags: list[str]) -> None:
    command = viewer_command(tmp_path / "a b.servetop", DisplayOptions(theme="light", reduced_motion=True), steer=steer)
    words = ["servetop", "replay", f"{tmp_path}/a b.servetop", *flags, "--theme", "light", "--reduced-motion"]
    assert command == [*python_argv("-m"), *words]


def test_the_page_is_on_the_loopback_address_by_default() -> None:
    assert WebAddress().host == "127.0.0.1"


def test_without_the_web_extra_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "textual_serve", None)
    with pytest.raises(UsageError, match=r"pip install 'servetop\[web\]'"):
        check_web(DisplayOptions())


def test_web_and_headless_exclude_each_other(servetop: Servetop) -> None:
    done = servetop("--web", "--headless")
    assert (done.code, done.complaint) == (2, "--web and --headless exclude each other: give one of them")


def test_replay_of_an_empty_folder_says_how_to_record(servetop: Servetop) -> None:
    done = servetop("replay")
    assert done.code == 1
    assert "no recording in" in done.complaint


def test_a_dashboard_without_a_terminal_is_refused(servetop: Servetop) -> None:
    done = servetop("replay", "sample", timeout=30.0)
    assert (done.code, done.out) == (2, "")
    assert done.complaint == "the dashboard needs a terminal: print a recording with servetop summary, or add --web"
