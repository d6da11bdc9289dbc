"""Plug-ins of other packages are found without importing them, and every failure of one is a line that names it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from servetop.core.errors import PlugInError, UsageError
from servetop.core.system.plug_ins import PlugIn, plug_ins
from tests.plug_in_package import install

GROUP = "servetop.tests"
MODULE = """
import sys
NUMBER = 7
class Panic(BaseException):
    pass
def leave():
    sys.exit(3)
def panic():
    raise Panic("called `Option::unwrap()`\\nsecond line \\x1b[31m!")
def count():
    yield 1
    raise ValueError("no two")
"""


def plug_in(location: str) -> PlugIn:
    return PlugIn(kind="exporter", name="acme", location=location, package="servetop-acme 1.0")


@pytest.fixture(autouse=True)
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = {"second": "acme_tools:NUMBER", "first": "nowhere:NUMBER"}
    install(tmp_path / "site", monkeypatch, {GROUP: points}, {"acme_tools": MODULE, "acme_broken": "1 / 0"})


def test_entry_points_are_found_by_name_without_an_import() -> None:
    found = plug_ins(GROUP, "exporter")
    assert list(found) == ["first", "second"]
    assert found["second"] == PlugIn(
        kind="exporter", name="second", location="acme_tools:NUMBER", package="servetop-acme 1.0"
    )
    assert "acme_tools" not in sys.modules
    assert found["second"].load(int) == 7


def test_of_two_packages_with_one_name_the_first_keeps_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "other", monkeypatch, {GROUP: {"second": "other:NUMBER"}}, {})
    assert plug_ins(GROUP, "exporter")["second"].location == "other:NUMBER"


def test_a_package_with_damaged_metadata_hides_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damaged = tmp_path / "damaged" / "bad-1.0.dist-info"
    damaged.mkdir(parents=True)
    (damaged / "entry_points.txt").write_bytes(b"[servetop.tests]\nx = \xff\xfe\n")
    monkeypatch.syspath_prepend(damaged.parent)
    assert "second" in plug_ins(GROUP, "exporter")


@pytest.mark.parametrize(
    ("location", "error"),
    [
        ("nowhere:NUMBER", "import failed: ModuleNotFoundError: No module named 'nowhere'"),
        ("acme_tools:NOTHING", "import failed: AttributeError: module 'acme_tools' has no attribute 'NOTHING'"),
        ("acme_broken:NUMBER", "import failed: ZeroDivisionError: division by zero"),
    ],
)
def test_what_cannot_be_imported_is_named_with_its_package(location: str, error: str) -> None:
    with pytest.raises(PlugInError) as raised:
        plug_in(location).load(int)
    assert str(raised.value) == f"exporter 'acme' of servetop-acme 1.0 ({location}): {error}"


def test_an_object_of_another_type_is_refused() -> None:
    with pytest.raises(PlugInError, match=r"is int: it must be a str of servetop\.api\.plug_ins"):
        plug_in("acme_tools:NUMBER").load(str)


@pytest.mark.parametrize(
    ("name", "error"), [("leave", "SystemExit: 3"), ("panic", "Panic: called `Option::unwrap()` second line !")]
)
def test_whatever_it_raises_is_one_line(name: str, error: str) -> None:
    made = plug_in("acme_tools:NUMBER")
    made.load(int)
    with pytest.raises(PlugInError) as raised:
        made.call("write", vars(sys.modules["acme_tools"])[name])
    assert str(raised.value).endswith(f": write failed: {error}")


def test_its_usage_error_stays_one() -> None:
    def refuse() -> None:
        raise UsageError("it has no requests:\ngive a whole file")

    with pytest.raises(UsageError, match=r"^it has no requests: give a whole file$"):
        plug_in("acme_tools:NUMBER").call("read", refuse)


def test_an_error_between_two_values_follows_the_first_one() -> None:
    made = plug_in("acme_tools:NUMBER")
    made.load(int)
    values = made.each("write", vars(sys.modules["acme_tools"])["count"])
    assert next(values) == 1
    with pytest.raises(PlugInError, match="write failed: ValueError: no two"):
        next(values)
