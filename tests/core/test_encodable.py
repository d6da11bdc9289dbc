"""Text that cannot be encoded as UTF-8 is found and replaced."""

from servetop.core.text.encodable import encodable, encodable_data, not_encodable

HALF = "\ud83d"
"""The first half of an emoji's two surrogates."""


def test_half_of_a_surrogate_pair_becomes_a_question_mark_and_other_text_stays() -> None:
    assert encodable(f"a{HALF}b") == "a?b"
    assert encodable("größer 🙂") == "größer 🙂"


def test_keys_and_nested_values_are_replaced_and_numbers_stay() -> None:
    assert encodable_data({HALF: [1, None, {"x": (f"{HALF}x", 2.5)}]}) == {"?": [1, None, {"x": ["?x", 2.5]}]}


def test_the_first_text_that_cannot_be_encoded_is_found() -> None:
    assert not_encodable({"a": ["b", 1, {f"k{HALF}": None}]}) == f"k{HALF}"
    assert not_encodable({"a": ["🙂", None, 1.5, True]}) is None
