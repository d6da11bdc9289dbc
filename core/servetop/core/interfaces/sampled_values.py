"""Whether a sample of an engine has values."""

from __future__ import annotations

import dataclasses

from servetop.core.events import EngineSample

_VALUES = tuple(each.name for each in dataclasses.fields(EngineSample) if not each.name.startswith("scrape_"))


def has_values(sample: EngineSample | None) -> bool:
    """Return whether a sample has a value; one without any means that the server answered, and no more."""
    return sample is not None and any(getattr(sample, name) is not None for name in _VALUES)
