"""What is found out about a server, piece by piece: from its answers, its metrics, its boot log, its command line."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """Each None is not known from this source."""

    version: str | None = None
    models: tuple[str, ...] = ()
    """Names that requests may ask for, the server's own order."""
    max_model_len: int | None = None
    """Most tokens of prompt and answer together."""
    kv_blocks_total: int | None = None
    """Usable KV blocks."""
    kv_tokens_total: int | None = None
    """Size of the KV cache in tokens, where the log tells that instead of blocks."""
    block_size: int | None = None
    """Tokens per KV block."""
    max_num_seqs: int | None = None

    def merged_with(self, other: ServerFacts) -> ServerFacts:
        """These facts, and the other source's where nothing is known here."""
        pairs = ((each.name, getattr(self, each.name), getattr(other, each.name)) for each in fields(self))
        return ServerFacts(**{name: theirs if ours is None or ours == () else ours for name, ours, theirs in pairs})
