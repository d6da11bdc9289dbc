"""What a cell of a sweep sets besides its load: values by the name of the field of the configuration that they replace.

They identify a cell together with its load, so that they have one form as text: JSON with sorted keys.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

FLAGS = "engine.args."
"""Beginning of the names of an engine's flags, as in `engine.args.max-num-batched-tokens`."""
MODEL = "model"
_SHORT = {
    "input_len": "in",
    "output_len": "out",
    "prefix_len": "prefix",
    "num_prefixes": "prefixes",
    "cache_hit_rate": "hit rate",
    "range_ratio": "range",
    "num_turns": "turns",
    "cancel_fraction": "cancelled",
}
"""Names on screens and in tables, where they differ from the field's."""
_BY_VALUE = (MODEL, "dataset", "dataset_path", "lengths", "arrivals")
"""Fields whose values tell what they are."""
_DERIVED = ("trace_rate",)
"""Fields that follow from others."""


def settings_text(settings: Mapping[str, Any]) -> str | None:
    """Return the settings as text; None without any."""
    return json.dumps(settings, sort_keys=True, ensure_ascii=False, separators=(",", ":")) if settings else None


def settings_of(text: str | None) -> Mapping[str, Any] | None:
    """Return the settings that a text contains; None for None, and for a text that holds no object."""
    try:
        found = json.loads(text or "null")
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def settings_label(settings: Mapping[str, Any] | str | None) -> str:
    """Return settings, or their text, in words, such as `in 512 · out 128`; empty without any."""
    found = settings_of(settings) if isinstance(settings, str) else settings
    shown = sorted((name, value) for name, value in (found or {}).items() if name not in _DERIVED)
    return " · ".join(filter(None, (_words(name, value) for name, value in shown)))


def _words(name: str, value: Any) -> str:
    if name.startswith(FLAGS):
        flag = f"--{name.removeprefix(FLAGS)}"
        return flag if value is True else f"no {flag}" if value is False else f"{flag} {_text(value)}"
    if value is None or value == "":
        return f"no {_SHORT.get(name, name)}" if value is None else ""
    text = _text(value)
    return text if name in _BY_VALUE else f"{_SHORT.get(name, name)} {text}"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else json.dumps(value)
