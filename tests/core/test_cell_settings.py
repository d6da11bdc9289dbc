"""The settings of a cell as text, which identifies it, and as words."""

from __future__ import annotations

from typing import Any

import pytest

from servetop.core.config_values.cell_settings import settings_label, settings_of, settings_text


def test_equal_settings_are_equal_texts_in_any_order() -> None:
    text = settings_text({"output_len": 8, "input_len": 512})
    assert text == settings_text({"input_len": 512, "output_len": 8}) == '{"input_len":512,"output_len":8}'
    assert settings_of(text) == {"input_len": 512, "output_len": 8}


def test_no_settings_are_no_text() -> None:
    assert settings_text({}) is None
    assert settings_of(None) is None
    assert settings_of("[1]") is settings_of("{") is None


@pytest.mark.parametrize(
    ("settings", "label"),
    [
        ({}, ""),
        (None, ""),
        ({"output_len": 128, "input_len": 512}, "in 512 · out 128"),
        ({"dataset": "sonnet", "cache_hit_rate": 0.5}, "hit rate 0.5 · sonnet"),
        ({"cache_hit_rate": None, "trace_rate": 3.5}, "no hit rate"),
        ({"lengths": "lognormal:input_mean=512"}, "lognormal:input_mean=512"),
        ({"lengths": "", "ignore_eos": False, "seed": 3}, "ignore_eos false · seed 3"),
        ({"model": "m", "engine.args.tp": 2, "engine.args.eager": True}, "--eager · --tp 2 · m"),
        ({"extra_body": {"top_p": 0.9}}, 'extra_body {"top_p": 0.9}'),
    ],
)
def test_a_label_has_short_names(settings: dict[str, Any] | None, label: str) -> None:
    assert settings_label(settings) == label
