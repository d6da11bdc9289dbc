"""Keeps secrets out of the file: API keys in options, headers, URLs, environment settings and log lines."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from servetop.core.config import RunConfig

REDACTED = "[redacted]"

_NAME = (
    r"(?:(?:\w+[-_])?(?:api[-_]?key|secret(?:[-_](?:access[-_])?key)?|password|passwd|"
    r"(?:access|auth|hf|hub|bearer|refresh|session)[-_]?token)|(?:proxy-)?authorization|cookie)"
)
"""A name whose value is secret; `max_tokens`, `tokenizer` and `api_key_env` are none."""
_SECRET_NAME = re.compile(rf"-{{0,2}}(?:{_NAME}|token)", re.IGNORECASE)
_SECRET_ASSIGNMENT = re.compile(
    rf"""(?P<name>(?<![\w-])(?:-{{0,2}}['"]?{_NAME}['"]?\s*[=:]\s*|--(?:{_NAME}|token)\s+|token=))"""
    r"""(?P<scheme>(?:Bearer|Basic|Token)\s+)?(?!None|null)(?P<value>\[?['"]?[^\s'",;&}\]]+['"]?\]?)""",
    re.IGNORECASE,
)
_SECRET_SHAPES = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{8,}|sk-[A-Za-z0-9_-]{8,}|nvapi-[\w-]{8,}|gh[pousr]_[A-Za-z0-9]{20,}|AKIA[A-Z0-9]{12,}"
    r"|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*)"
    r"|(?<=Bearer )\S+|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)",
)
_SHORTEST_KNOWN = 6
"""Characters; a shorter known secret (`EMPTY`) would blot out innocent text."""


class Redactor:
    """Replaces what is secret, by name, by shape, or because it is a `known` value such as the API key in use."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        values = sorted((each for each in known if len(each) >= _SHORTEST_KNOWN), key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, values))) if values else None

    def text(self, text: str) -> str:
        """The text without secrets; most texts come back as they are."""
        if self._known is not None:
            text = self._known.sub(REDACTED, text)
        text = _SECRET_SHAPES.sub(REDACTED, text)
        return _SECRET_ASSIGNMENT.sub(rf"\g<name>\g<scheme>{REDACTED}", text)

    def data(self, data: Any) -> Any:
        """Plain data (dictionaries, lists, texts) without secrets; texts become valid UTF-8."""
        if isinstance(data, Mapping):
            return {str(key): self._entry(str(key), value) for key, value in data.items()}
        if isinstance(data, list | tuple):
            return self._arguments(data)
        if isinstance(data, str):
            return self.text(data).encode("utf-8", "replace").decode("utf-8")
        return data

    def _entry(self, key: str, value: Any) -> Any:
        secret = _SECRET_NAME.fullmatch(key) is not None and value is not None
        return REDACTED if secret and isinstance(value, str | list | tuple) else self.data(value)

    def _arguments(self, values: Iterable[Any]) -> list[Any]:
        """A command line: what follows `--api-key` is secret."""
        result: list[Any] = []
        before = ""
        for value in values:
            follows = before.startswith("-") and _SECRET_NAME.fullmatch(before) is not None
            result.append(REDACTED if follows else self.data(value))
            before = value if isinstance(value, str) else ""
        return result


def known_secrets(config: RunConfig) -> Redactor:
    """A redactor that also knows the value of the API key in use."""
    key_name = config.engine.api_key_env
    return Redactor([os.environ.get(key_name, "")] if key_name else [])
