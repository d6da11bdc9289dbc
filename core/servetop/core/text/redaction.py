"""Redacts secrets from stored or printed text: by the name they follow, by their shape, or as known values."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from servetop.core.text.secret_names import is_public_header, is_secret

REDACTED = "[redacted]"

_ASSIGNED = re.compile(
    r"""(?<![\w.-])-{0,2}(?P<name>[A-Za-z_][\w.-]*+)(?P<close>\\*['"]?)(?P<sep>\s{0,3}[=:]\s{0,3})"""
)
"""`name=`, `--name=`, `name: `, `"name": `, `\\"name\\": `."""
_FLAG = re.compile(r"""(?<![\w.-])--?(?P<name>[A-Za-z][\w.-]*+)(?P<close>['"]?,?)(?P<sep>\s{1,3}(?!-))""")
"""`--name value`, and `'--name', 'value'` as in a printed list."""
_VALUE = re.compile(
    r"""(?P<kept>(?:(?:Bearer|Basic|Token|Digest|ApiKey|Negotiate)\s+)?)"""
    r"""(?:(?P<quote>\\*['"])(?P<quoted>.{0,4000}?)(?P=quote)|(?P<list>\[[^\]]{0,4000}\])|(?P<bare>[^\s'"`,;&}\])]+))""",
    re.IGNORECASE,
)
_TO_THE_END = re.compile(
    r"""(?P<kept>(?:(?:Bearer|Basic|Token|Digest|ApiKey|Negotiate)\s+)?)(?P<bare>[^'"\n]+)""", re.I
)
"""The value of a header with several parts."""
_MANY_PARTS = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie"})
_ONLY_QUOTED = frozenset({"key", "keys", "token", "tokens", "auth", "cookie", "cookies", "bearer"})
"""Before a colon, these are ordinary words unless quoted."""
_SHAPES = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{8,}|sk-[A-Za-z0-9_-]{8,}|nvapi-[\w-]{8,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}"
    r"|glpat-[\w-]{15,}|xox[abprs]-[\w-]{10,}|AKIA[A-Z0-9]{12,}|AIza[\w-]{30,}"
    r"|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*)"
    r"|(?<=Bearer )[^\s'\"]+|(?<=://)[^/\s@'\"]+(?=@)"
    r"|(?<=[?&](?:sig|key)=)[^&\s'\"]+|(?<=[?&]signature=)[^&\s'\"]+|(?<=[?&]code=)[^&\s'\"]+"
)
_QUERY = re.compile(
    r"(?<=[?&])(?P<name>[\w.-]{0,64}(?:signature|sig|credential|token|secret|password|key|keyid|code))=[^&#\s'\"]+",
    re.IGNORECASE,
)
"""Parameters of presigned URLs, such as `X-Amz-Signature=`; also the access key that goes with the signature."""
_CLUES = re.compile(
    r"key|token|secret|passw?|credential|auth|cookie|pwd|bearer|jwt|://|hf_|sk-|gh|gl|xo|nv|AKIA|AIza|eyJ",
    re.IGNORECASE,
)
"""A text without a match holds no recognisable secret; most texts have none."""
_HEADER_FLAGS = frozenset({"-H", "--header", "--headers", "--extra-header"})
_VARIABLE_FLAGS = frozenset({"--header-env", "--metrics-header-env"})
"""Options whose value is `NAME=VARIABLE`: a header, and the variable that holds its value."""
PLAIN_WORD = re.compile(r"[a-z]{1,11}|[A-Z]{1,11}|[A-Z][a-z]{1,10}")
"""A value that is an ordinary word: unless its name marks it as secret, it is redacted only where it was given."""
SHORTEST_KNOWN = 6
"""Characters; a shorter known secret (`EMPTY`) would redact harmless text."""


class Redactor:
    """Replaces secrets, found by name, by shape, or as `known` values such as the API key in use."""

    def __init__(self, known: Iterable[str] = (), *, on_secret: Callable[[str], None] | None = None) -> None:
        """`on_secret` is called with each secret that is replaced."""
        values = sorted({each for each in known if len(each) >= SHORTEST_KNOWN}, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, values))) if values else None
        self._on_secret = on_secret

    def sentence(self, text: str) -> str:
        """Redact servetop's own message, which may quote others: words after an option's name are not its value."""
        text = self._without_known(text)
        return self._by_name(self._by_shape(text), _ASSIGNED, prose=True) if _CLUES.search(text) else text

    def text(self, text: str) -> str:
        """Redact text from outside, such as a log line; most texts are returned unchanged."""
        text = self._without_known(text)
        if not _CLUES.search(text):
            return text
        return self._by_name(self._by_name(self._by_shape(text), _ASSIGNED), _FLAG)

    def data(self, data: Any) -> Any:
        """Redact plain data (dictionaries, lists, strings); strings become valid UTF-8."""
        if isinstance(data, Mapping):
            return {str(key): self._entry(str(key), value) for key, value in data.items()}
        if isinstance(data, list | tuple):
            return self._arguments(data)
        return self._nested(data) if isinstance(data, str) else data

    def _entry(self, key: str, value: Any) -> Any:
        if key.lower().endswith("headers") and isinstance(value, Mapping):
            return {name: self._header(str(name), each) for name, each in value.items()}
        if is_secret(key, value) and not isinstance(value, Mapping):
            return self._hidden(value)
        if is_secret(key) and isinstance(value, Mapping):
            return {name: self._hidden(each) for name, each in value.items()}
        return self.data(value)

    def _header(self, name: str, value: Any) -> Any:
        if is_public_header(name):
            return self.data(value)
        innocent = not is_secret(name) and PLAIN_WORD.fullmatch(str(value))
        return REDACTED if innocent else self._hidden(value)

    def _nested(self, text: str) -> str:
        """Redact a string, which may hold JSON."""
        if text[:1] in ("{", "["):
            try:
                data = json.loads(text)
            except (ValueError, RecursionError):
                data = None
            clean = self.data(data)
            text = text if clean == data else json.dumps(clean)
        return self.text(text).encode("utf-8", "replace").decode("utf-8")

    def _arguments(self, values: Iterable[Any]) -> list[Any]:
        """Redact a list, or a command line: everything after `--api-key` up to the next option is secret."""
        result: list[Any] = []
        option = ""
        for value in values:
            if isinstance(value, str) and value.startswith("-"):
                option = value
                result.append(self._argument(value))
            elif isinstance(value, str) and option in _HEADER_FLAGS:
                result.append(self._header_line(value))
            elif isinstance(value, str) and option in _VARIABLE_FLAGS:
                result.append(self._by_shape(self._without_known(value)))
            elif option and is_secret(option.lstrip("-"), value) and isinstance(value, str | int | float):
                result.append(self._hidden(value))
            else:
                result.append(self._argument(value) if isinstance(value, str) else self.data(value))
        return result

    def _argument(self, text: str) -> str:
        """Redact one argument of a command line; the value of `--title=a long title` extends to its end."""
        name, equals, value = text.partition("=")
        named = name.lstrip("-")
        if equals and re.fullmatch(r"[\w.-]+", named):
            return f"{name}={self._hidden(value) if is_secret(named, value) else self._nested(value)}"
        return self._nested(text)

    def _header_line(self, text: str) -> str:
        name, colon, value = text.partition(":" if ":" in text else "=")
        return f"{name}{colon} {self._header(name, value.strip())}" if colon else self._nested(text)

    def _hidden(self, value: Any) -> Any:
        for each in value if isinstance(value, list | tuple) else (value,):
            self._report(str(each))
        return REDACTED if value is not None else None

    def _report(self, secret: str) -> None:
        if self._on_secret is not None:
            self._on_secret(secret)

    def _without_known(self, text: str) -> str:
        return text if self._known is None else self._known.sub(REDACTED, text)

    def _by_shape(self, text: str) -> str:
        def hide(match: re.Match[str]) -> str:
            self._report(match.group())
            return REDACTED

        def hide_value(match: re.Match[str]) -> str:
            self._report(match.group().partition("=")[2])
            return f"{match['name']}={REDACTED}"

        return _SHAPES.sub(hide, _QUERY.sub(hide_value, text))

    def _by_name(self, text: str, pattern: re.Pattern[str], *, prose: bool = False) -> str:
        kept: list[str] = []
        done = 0
        for match in pattern.finditer(text):
            name = match["name"].lower()
            if match.start() < done or not is_secret(match["name"]) or _is_word(text, match, prose=prose):
                continue
            value = (_TO_THE_END if name in _MANY_PARTS else _VALUE).match(text, match.end())
            value = value or _VALUE.match(text, match.end())
            if value is None:
                continue
            group = next(each for each in ("quoted", "list", "bare") if value.groupdict().get(each) is not None)
            if not is_secret(match["name"], value[group]) or value[group] == REDACTED:
                continue
            if prose and group == "bare" and PLAIN_WORD.fullmatch(value[group]):
                continue  # `column 'token': expected a prompt`: quoted data has quotes around its values too
            self._report(value[group])
            kept += [text[done : value.start(group)], REDACTED]
            done = value.end(group)
        return "".join([*kept, text[done:]]) if kept else text


def _is_word(text: str, match: re.Match[str], *, prose: bool) -> bool:
    """Whether it is an ordinary word before a colon rather than a name.

    As in `put it into the key: it is read there`, or the last word of a quoted phrase: `column 'Response tokens': 5`.
    """
    name = match["name"].lower()
    word = name.isalpha() if prose else name in _ONLY_QUOTED
    ends_phrase = bool(match["close"]) and text[max(0, match.start() - 1) : match.start()] == " "
    return word and (not match["close"] or ends_phrase) and match["sep"].strip() == ":"
