"""Collects the secrets given to a run, so that they can be redacted wherever they appear."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote

from servetop.core.config import EngineConfig, RunConfig, to_data
from servetop.core.text.redaction import PLAIN_WORD, SHORTEST_KNOWN, Redactor
from servetop.core.text.secret_names import is_secret

_USER_INFO = re.compile(r"://([^/\s@]+)@")
_SCHEME = re.compile(r"(?:Bearer|Basic|Token|Digest|ApiKey|Negotiate)\s+", re.IGNORECASE)


def redactor_of(config: RunConfig, environ: Mapping[str, str] | None = None) -> Redactor:
    """Return a redactor that knows the secrets of a run's configuration and of its environment."""
    variables = os.environ if environ is None else environ
    named = [*_key_variables(config.engine), *config.workload.header_env.values()]
    return Redactor(_all_forms([*_given(to_data(config)), *_in_environment(variables, named)]))


def engine_secrets(config: EngineConfig, environ: Mapping[str, str]) -> list[str]:
    """Return the secrets that an engine's log must not show."""
    given = [*_given(to_data(config)), *_in_environment(environ, _key_variables(config))]
    return sorted({each for each in _all_forms(given) if len(each) >= SHORTEST_KNOWN}, key=len, reverse=True)


def redactor_of_command(argv: Sequence[str], environ: Mapping[str, str] | None = None) -> Redactor:
    """Return a redactor that knows the secrets of a command line and of its environment, for errors about either."""
    variables = os.environ if environ is None else environ
    return Redactor(_all_forms([*_given(list(argv)), *_in_environment(variables, [])]))


def _key_variables(config: EngineConfig) -> list[str]:
    """Return the names of the variables with the keys of the engine and of its metrics."""
    return [config.api_key_env or "", config.metrics_api_key_env or "", *config.metrics_header_env.values()]


def _given(data: Any) -> list[str]:
    """Return the secrets in plain data, found by key or position."""
    found: list[str] = []
    Redactor(on_secret=found.append).data(data)
    return found


def _in_environment(environ: Mapping[str, str], named: Sequence[str]) -> Iterator[str]:
    for name, value in environ.items():
        if name in named or is_secret(name, value):
            yield value
        yield from _USER_INFO.findall(value)


def _all_forms(secrets: Iterable[str]) -> Iterator[str]:
    """Yield the forms in which each secret may appear: without its scheme or user, in JSON, in a URL."""
    for secret in secrets:
        whole = {secret.strip(), _SCHEME.sub("", secret.strip())}
        parts = {part for part in re.split(r"[;,\s]+", secret) if not PLAIN_WORD.fullmatch(part)}
        values = {part.partition(mark)[2] for part in whole | parts for mark in (":", "=")}
        for each in whole | parts | {value for value in values if not PLAIN_WORD.fullmatch(value)}:
            yield from {each, unquote(each), quote(each, safe="", errors="replace"), json.dumps(each)[1:-1]}
