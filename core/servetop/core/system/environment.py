"""Environment variables that servetop sets for itself, and removes from the environment of other programs."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

_ADDED = {"OPENBLAS_NUM_THREADS": "1"}
"""NumPy starts a thread per CPU at import; servetop does not use them, and they would delay each start."""
_MARK = "SERVETOP_ADDED"
"""Lists the added variables for the processes that inherit them."""


def limit_own_threads(environment: MutableMapping[str, str]) -> None:
    """Set the variables that are unset; call before NumPy is imported."""
    added = [name for name in _ADDED if name not in environment]
    if added:
        environment.update({name: _ADDED[name] for name in added}, **{_MARK: ",".join(added)})


def engine_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment as the user set it, for other programs."""
    added = environment.get(_MARK, "").split(",")
    return {name: value for name, value in environment.items() if name not in added and name != _MARK}
