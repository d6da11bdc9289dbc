"""Values of the command line pass through unchanged."""

from servetop.cli.framework.plain_values import PlainValue


def test_a_missing_value_is_none_or_an_empty_tuple() -> None:
    assert PlainValue(repeat=False).coerce(None, None, None) is None
    assert PlainValue(repeat=True).coerce(None, None, None) == ()


def test_a_value_is_not_converted() -> None:
    assert PlainValue(repeat=False).coerce("8", None, None) == "8"
    assert PlainValue(repeat=True).coerce(("8", "x"), None, None) == ["8", "x"]
