"""The order of versions."""

from __future__ import annotations

import pytest

from servetop.engines.server_facts import is_older


@pytest.mark.parametrize(
    ("version", "oldest", "older"),
    [
        ("1.4.5", "2.0", True),
        ("2.0", "2.0.0", False),
        ("2.10.1", "2.9", False),
        ("v0.3.6.post2", "0.4", True),
        ("0.17.0.post1", "0.17", False),
        ("1.2.0rc3", "1.1", False),
        ("0.1.dev1+g3a2b", "0.2.7", False),  # out of a development tree: says nothing of its age
        ("nightly", "2.0", False),
        ("", "2.0", False),
    ],
)
def test_versions_are_compared_number_by_number(version: str, oldest: str, older: bool) -> None:
    assert is_older(version, oldest) is older
