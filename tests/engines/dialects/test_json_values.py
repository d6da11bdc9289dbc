"""Numbers and error messages of a server are checked before they are used."""

import pytest

from servetop.engines.dialects.json_values import count_in, count_of, error_text, one_line, seconds_of


@pytest.mark.parametrize("value", [-1, 1 << 31, True, 2.5, "3", None])
def test_an_implausible_count_is_none(value: object) -> None:
    assert count_of(value) is None


def test_a_count_inside_an_object_is_found() -> None:
    assert count_in({"cached": 0}, "cached") == 0
    assert count_in([], "cached") is None


@pytest.mark.parametrize("value", [-0.5, float("nan"), 1e9, True, "5"])
def test_an_implausible_duration_is_none(value: object) -> None:
    assert seconds_of(value) is None


def test_milliseconds_become_seconds() -> None:
    assert seconds_of(1500) == 1.5


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error": {"message": "no\\n GPU"}}', "no GPU"),
        (b'{"detail": "late"}', "late"),
        (b'{"error": "full", "message": "other"}', "full"),
        (b'{"code": 5}', '{"code":5}'),
        (b"plain \xff", "plain \N{REPLACEMENT CHARACTER}"),
    ],
)
def test_the_innermost_message_of_an_error_is_found(body: bytes, message: str) -> None:
    assert error_text(body) == message


def test_a_long_text_is_cut_to_300_characters() -> None:
    assert len(one_line("x " * 150)) == 299
    assert one_line("x " * 151) == "x " * 149 + "x…"
