"""Options on an engine's own command line."""

from __future__ import annotations

import pytest

from servetop.core.errors import UsageError
from servetop.engines.adapters.engine_flags import (
    agreed,
    flag_value,
    reachable,
    refuse_secrets,
    with_flags,
    without_flag,
)


@pytest.mark.parametrize(
    ("args", "value"),
    [
        (["--port", "1"], "1"),
        (["--port=1"], "1"),
        (["--port", "1", "--port=2"], "2"),
        (["--port"], ""),
        (["port", "1"], None),
        (["--report", "1"], None),
        ([], None),
    ],
)
def test_the_last_value_of_a_flag_counts(args: list[str], value: str | None) -> None:
    assert flag_value(args, "--port") == value


def test_a_flag_may_be_written_with_underscores() -> None:
    assert flag_value(["--max_num_seqs", "8"], "--max-num-seqs") == "8"
    assert without_flag(["--max_num_seqs=8", "--seed", "1"], "--max-num-seqs") == ["--seed", "1"]


def test_flags_are_added_unless_the_user_gave_them() -> None:
    args = ["--seed", "1"]
    assert with_flags(args, {"--port": 8, "--seed": 2, "--host": None}) == ["--port", "8", "--seed", "1"]


def test_a_value_that_looks_like_the_flag_is_kept() -> None:
    assert without_flag(["--a", "--port", "--port", "8", "x"], "--a") == ["--port", "8", "x"]
    assert without_flag(["--port", "8", "--b"], "--port") == ["--b"]


def test_a_number_given_twice_must_be_the_same() -> None:
    assert agreed(8, [], "--n") == agreed(None, ["--n", "8"], "--n") == agreed(8, ["--n=8"], "--n") == 8
    assert agreed(None, [], "--n") is None
    with pytest.raises(UsageError, match="--n is given twice, as 8 and after -- as 9"):
        agreed(8, ["--n", "9"], "--n")
    with pytest.raises(UsageError, match="--n 'x' is not a whole number"):
        agreed(8, ["--n", "x"], "--n")


@pytest.mark.parametrize("host", [None, "", "0.0.0.0", "::"])
def test_a_server_on_all_addresses_is_reached_on_loopback(host: str | None) -> None:
    assert reachable(host) == "127.0.0.1"
    assert reachable("10.0.0.7") == "10.0.0.7"


@pytest.mark.parametrize("args", [["--api-key", "s3"], ["--hf_token=s3"], ["-x", "--token", "s3"]])
def test_a_secret_on_the_command_line_is_refused_without_showing_it(args: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        refuse_secrets(args)
    assert "s3" not in str(caught.value)


def test_other_arguments_hold_no_secret() -> None:
    refuse_secrets(["--api-key-file", "f", "token", "x"])
