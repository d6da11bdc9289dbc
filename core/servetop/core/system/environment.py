"""The variables that servetop adds to its own environment, and takes away again from an engine's."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

_ADDED = {"OPENBLAS_NUM_THREADS": "1"}
"""NumPy starts a thread per processor at import; servetop has no use for them and each start would wait for them."""
_MARK = "SERVETOP_ADDED"
"""Names the variables that were added, for the processes that inherit them."""


def limit_own_threads(environment: MutableMapping[str, str]) -> None:
    """Set what is not set yet; call it before NumPy is imported."""
    added = [name for name in _ADDED if name not in environment]
    if added:
        environment.update({name: _ADDED[name] for name in added}, **{_MARK: ",".join(added)})


def engine_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment as the user set it, for a process that is not servetop's own."""
    added = environment.get(_MARK, "").split(",")
    return {name: value for name, value in environment.items() if name not in added and name != _MARK}
