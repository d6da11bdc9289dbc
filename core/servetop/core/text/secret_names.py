"""Decides by name whether a value is a secret: options, variables, JSON keys, HTTP headers."""

from __future__ import annotations

import re

PUBLIC_HEADERS = frozenset(
    {
        "accept", "accept-encoding", "accept-language", "content-type", "user-agent",
        "correlation-id", "request-id", "x-client-request-id", "x-correlation-id", "x-request-id",
    }
)  # fmt: skip
"""HTTP headers whose values may be recorded, in lower case; any other may hold a secret."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_NOT_LETTERS = re.compile(r"[^a-z0-9]")
_SECRET_PART = re.compile(
    r"passw(?:or)?d|passphrase|passcode|secret|credential|authorization|apikey|authkey|"
    r"(?:access|private|encryption|signing|secret|master|account|license)key|"
    r"(?:access|auth|bearer|refresh|session|sas|hf|hub|security)token(?!s)"
)
"""Parts of a name, in lower case without separators, that mark it as secret."""
_SECRET_WORDS = frozenset({"key", "keys", "token", "tokens", "auth", "cookie", "cookies", "pwd", "bearer", "jwt"})
_COUNTS = frozenset({
    "max", "min", "num", "number", "per", "total", "count", "counts", "batched", "prompt", "output", "input",
    "generated", "generation", "completion", "reasoning", "accepted", "eos", "bos", "pad", "unk", "sep", "cls",
    "mask", "stop", "special", "image", "audio", "video", "first", "last", "next", "new", "draft", "speculative",
    "added", "public", "cache", "cached", "sort", "primary", "foreign", "partition", "kv", "query", "value",
    "values", "head", "heads", "tokenizer", "begin", "end",
})  # fmt: skip
"""Words beside `token` or `key` that refer to text or a table rather than a secret."""
_ABOUT = frozenset({
    "env", "file", "path", "dir", "folder", "home", "sock", "name", "names", "type", "kind", "source", "len",
    "length", "size", "limit", "budget", "url", "uri", "header", "headers", "format", "mode", "parser", "policy",
    "index", "at", "rate", "seconds", "timeout", "ttl", "expiry", "enabled", "required", "dtype", "group", "ids",
    "verify",
})  # fmt: skip
"""Last words of names whose value describes or locates a secret."""
_ABOUT_KEYS = _ABOUT | {"id"}
_NAMES_OF_FILES = frozenset({"client_key", "client-key", "PWD", "OLDPWD"})
_EMPTY = frozenset({"", "none", "null", "true", "false", "yes", "no", "auto", "value", "number"})
"""Values that hold no secret, in lower case; the last two are placeholders."""
_NUMBER = re.compile(r"[-+]?[\d_,.]+(?:e[-+]?\d+)?", re.IGNORECASE)
_SHORTEST_NUMBER = 6
"""Digits; a shorter number named `token` or `key` is a position or a count."""


def is_secret(name: str, value: object = "?") -> bool:
    """Whether a setting of that name holds a secret; numbers of `…tokens`, flags and empty values never do."""
    if name in _NAMES_OF_FILES:
        return False
    words = [word.lower() for word in _WORD.findall(name)]
    if not words or words[-1] in _ABOUT or _says_nothing(value):
        return False
    if _SECRET_PART.search(_NOT_LETTERS.sub("", name.lower())) or (len(words) > 1 and words[-1] == "pass"):
        return True
    if name.isupper() and words[-1].endswith(("key", "token")) and words[-1] not in _SECRET_WORDS:
        return True  # a variable such as MYKEY, in one word
    if _SECRET_WORDS.isdisjoint(words) or words[-1] in _ABOUT_KEYS or not _COUNTS.isdisjoint(words):
        return False
    return not _is_a_count(value, plural="tokens" in words)


def _says_nothing(value: object) -> bool:
    return value is None or isinstance(value, bool) or (isinstance(value, str) and value.strip().lower() in _EMPTY)


def _is_a_count(value: object, *, plural: bool) -> bool:
    if isinstance(value, list | tuple):
        return all(_is_a_count(each, plural=plural) for each in value)
    text = str(value).strip()
    return _NUMBER.fullmatch(text) is not None and (plural or len(text) < _SHORTEST_NUMBER)


def is_public_header(name: str) -> bool:
    """Whether a header's value may be recorded."""
    return name.strip().lower() in PUBLIC_HEADERS
