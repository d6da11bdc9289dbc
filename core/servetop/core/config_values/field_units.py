"""Units of the fields of a configuration, which their declarations name."""

from __future__ import annotations

import dataclasses


def unit_of(config: object, name: str) -> str:
    """The unit of a field's values, such as `s` or `tokens`; `arguments` for a command line; empty without one."""
    own = {each.name: each for each in dataclasses.fields(config)} if dataclasses.is_dataclass(config) else {}
    return str(own[name].metadata.get("unit", "")) if name in own else ""
