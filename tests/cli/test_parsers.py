"""Option values are parsed strictly, and errors name the option."""

from collections.abc import Callable

import pytest

from servetop.cli.options import parsers
from servetop.core.errors import UsageError


def test_automatic_workers_are_zero() -> None:
    assert [parsers.parse_workers(text) for text in (" Auto ", "1", "64")] == [0, 1, 64]


def test_percentiles_are_sorted_without_duplicates() -> None:
    assert parsers.parse_percentiles("99.9,50 50,0,100") == (0.0, 50.0, 99.9, 100.0)


def test_objectives_are_seconds_from_one_text_or_several() -> None:
    assert parsers.parse_goodput(["ttft:500,tpot:20", "e2el:1e3"]) == {"ttft": 0.5, "tpot": 0.02, "e2el": 1.0}


def test_a_pair_keeps_further_equals_signs_in_its_value() -> None:
    assert parsers.parse_metadata(["a=b=c", "d="]) == {"a": "b=c", "d": ""}


def test_a_share_is_a_percentage_or_a_fraction() -> None:
    assert [parsers.parse_fraction(text) for text in ("2%", " 0.5 % ", "0.02", "0")] == [0.02, 0.005, 0.02, 0.0]
    assert parsers.parse_fractions(["a=2%", "b=0.1"]) == {"a": 0.02, "b": 0.1}


@pytest.mark.parametrize("text", ["", "two", "-1%", "nan", "inf"])
def test_another_share_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"use a share such as 2% or 0\.02"):
        parsers.parse_fraction(text)
    with pytest.raises(UsageError, match="--margin a: use a share above 0, as in a=2%"):
        parsers.parse_fractions(["a=0"])


def test_a_command_is_split_as_by_a_shell() -> None:
    assert parsers.parse_command("run 'two words' x") == ("run", "two words", "x")


@pytest.mark.parametrize(
    ("parse", "value", "message"),
    [
        (parsers.parse_workers, "0", "--workers 0"),
        (parsers.parse_workers, "65", "--workers 65"),
        (parsers.parse_percentiles, "50,101", "--metric-percentiles"),
        (parsers.parse_percentiles, "nan", "--metric-percentiles"),
        (parsers.parse_goodput, ["ttft:0"], "--goodput ttft:0"),
        (parsers.parse_goodput, ["speed:5"], "--goodput speed:5"),
        (parsers.parse_goodput, ["ttft:500", "ttft:50"], "--goodput ttft:50: ttft has an objective already"),
        (parsers.parse_batch_sizes, "64,0", "--max-num-seqs"),
        (parsers.parse_rates, "8,nan", "--request-rate"),
        (parsers.parse_metadata, ["=x"], "--metadata =x"),
        (parsers.parse_settings, ["blocks"], "--set blocks"),
        (parsers.parse_command, "'open", "check its quotes"),
        (parsers.parse_extra_body, "[1]", "use a JSON object"),
        (parsers.parse_extra_body, "{", "is not JSON"),
        (parsers.parse_extra_body, '{"a": ["\\ud83d"]}', r"'\\ud83d' is half a surrogate pair"),
    ],
)
def test_an_invalid_value_is_a_usage_error(parse: Callable[[object], object], value: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse(value)
