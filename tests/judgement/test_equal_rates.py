"""Of alike servers that get requests at the same rate the slowed one is named, and no other."""

from __future__ import annotations

import pytest

from tests.judgement.equal_rates import KINDS, WITHIN, drawn_servers, main, named


@pytest.mark.parametrize("seed", [300, 304])
def test_the_slowed_one_is_named_within_five_seconds_and_stays_so(seed: int) -> None:
    found = named(drawn_servers(seed, "slowed 2 times"), slowed=True)
    assert found.first <= WITHIN
    assert found.held >= 0.7
    assert found.wrong == 0.0


@pytest.mark.parametrize("kind", ["equal", "unequal loads"])
def test_no_server_is_named_where_none_was_slowed(kind: str) -> None:
    assert KINDS[kind].factor == 1.0
    assert named(drawn_servers(300, kind), slowed=False).wrong == 0.0


def test_the_command_prints_a_row_for_each_kind(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "300", "--kind", "equal"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "| equal | 1 | – | – | 0 |"
