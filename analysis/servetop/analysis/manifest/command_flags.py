"""The options of an engine's command line, in a form that does not depend on their order or spelling."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence

GIVEN = "true"
"""Value of an option that was given without one."""
_OPTION = re.compile(r"(?P<dashes>--?)(?P<name>[A-Za-z][\w.-]*)(?:=(?P<value>.*))?", re.DOTALL)
_DECIMAL = re.compile(r"[-+]?\d*\.\d+|[-+]?\d+\.")
_TEMPORARY = re.compile(r"(?:/private)?/(?:tmp|var/tmp|dev/shm|var/folders)/(?P<inner>.+)")
_RANDOM_NAME = re.compile(r"tmp[\w]{6,}|servetop-.*|.*[-_.][A-Za-z0-9_]{8,}")
_CONTAINER_NAME = re.compile(r"servetop-[\w.-]+")


def flags_of(arguments: Sequence[str], *, model_names: Collection[str] = ()) -> dict[str, str]:
    """Return the values by option, without its dashes; words before the first option have the key `command`.

    `--a=b` equals `--a b`, `_` in a name equals `-`, the values of a repeated option are sorted. Ports, names of
    containers and the words in `model_names` are left out, and temporary folders are shortened, because they differ
    between equal runs.
    """
    found: dict[str, list[str]] = {}
    words = [each for each in arguments if each not in model_names]
    for name, value in _pairs(words):
        if not _is_volatile(name, value):
            found.setdefault(name, []).append(value)
    return {name: _joined(values) for name, values in found.items()}


def stable_path(text: str) -> str:
    """Return a path with the random part of a temporary folder replaced by `{tmp}`."""
    temporary = _TEMPORARY.fullmatch(text)
    if temporary is None:
        return text
    name = temporary["inner"].rstrip("/").rpartition("/")[2]
    return "{tmp}" if _RANDOM_NAME.fullmatch(name) else f"{{tmp}}/{name}"


def _pairs(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each option with each of its values; an option without a value has an empty one."""
    name, pending = "command", False
    for word in words:
        option = _OPTION.fullmatch(word)
        if option is None:
            yield name, word
            pending = False
            continue
        if pending:
            yield name, ""
        name = option["name"].replace("_", "-") if option["dashes"] == "--" else option["name"]
        pending = option["value"] is None
        if not pending:
            yield name, option["value"]
    if pending:
        yield name, ""


def _is_volatile(name: str, value: str) -> bool:
    is_port = name == "port" or name.endswith("-port") or (name in ("p", "publish") and "{port}" in value)
    return is_port or (name == "name" and _CONTAINER_NAME.fullmatch(value) is not None)


def _joined(values: Sequence[str]) -> str:
    return " ".join(sorted(_value(each) for each in values if each)) or GIVEN


def _value(text: str) -> str:
    """Return the value in one spelling: JSON sorted by key, decimals and booleans as JSON has them."""
    if text in ("True", "False"):
        return text.lower()
    if _DECIMAL.fullmatch(text):
        return f"{float(text):.12g}"
    if text[:1] in ("{", "["):
        try:
            return json.dumps(json.loads(text), sort_keys=True)
        except (ValueError, RecursionError):
            return text
    return stable_path(text)
