"""Facts about a server, such as its version and limits, merged from probes, metrics, start-up log and command line."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields

_NUMBERS = re.compile(r"v?(\d+(?:\.\d+)*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """What one source reports about a server; None where it reports nothing."""

    version: str | None = None
    models: tuple[str, ...] = ()
    """Served model names, in the server's order."""
    max_model_len: int | None = None
    """Maximum tokens of prompt and completion together."""
    kv_blocks_total: int | None = None
    """Usable KV blocks."""
    kv_tokens_total: int | None = None
    """Size of the KV cache in tokens, if the log reports that instead of blocks."""
    block_size: int | None = None
    """Tokens per KV block."""
    cache_page: int | None = None
    """Tokens that the prefix cache keeps or drops together, if they are not a KV block."""
    max_num_seqs: int | None = None

    def merged_with(self, other: ServerFacts) -> ServerFacts:
        """Return these facts, completed with those of `other`."""
        pairs = ((each.name, getattr(self, each.name), getattr(other, each.name)) for each in fields(self))
        return ServerFacts(**{name: theirs if ours is None or ours == () else ours for name, ours, theirs in pairs})


def is_older(version: str, oldest: str) -> bool:
    """Whether `version` precedes `oldest`, compared number by number: `2.9` precedes `2.10`.

    False for versions that do not begin with a number and for development builds (`0.1.dev1+g3a2b`), whose number
    does not reflect their age.
    """
    left, right = _NUMBERS.match(version), _NUMBERS.match(oldest)
    if left is None or right is None or "dev" in version:
        return False
    return _padded(left[1]) < _padded(right[1])


def _padded(numbers: str) -> tuple[int, ...]:
    """Pad to four numbers, so that `2` equals `2.0.0`."""
    parts = tuple(int(part) for part in numbers.split(".")[:4])
    return parts + (0,) * (4 - len(parts))
