"""Which prompts begin alike: keyed hashes of blocks, each of which covers all blocks before it."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterable, Iterator

from servetop.workload.shape.logged_request import LoggedRequest
from servetop.workload.token_estimate import CHARACTERS_PER_TOKEN, estimated_tokens

MEASURED_REQUESTS = 500
"""Requests from which the characters of a token are measured."""
HASH_BITS = 52
"""Of the identity of a block: every reader of JSON has whole numbers of this size."""
_LEAST_HASH = 1 << 32
"""A number below it is a name only within its trace: one in 2^20 hashes is as small."""


class PrefixGroups:
    """Turns prompts into identities of blocks; without the salt they are not comparable with known texts."""

    def __init__(self, salt: bytes, *, block_tokens: int, characters_per_token: float) -> None:
        """`characters_per_token` sets the length of a block in a prompt that is a text."""
        self._salt = salt[:64]
        self._block_tokens = block_tokens
        self._characters = max(1, round(block_tokens * characters_per_token))
        self._fresh = itertools.count()

    def session(self, name: str | int, *, source: int) -> int:
        """Return the identity of a session; equal names are one session, in whatever source. A number is of its source.

        A number that is a hash itself, as in a trace that was written with a salt file, counts as a name.
        """
        return self._hash(b"session", self._scoped(name, source).encode("utf-8", "replace"))

    def blocks(self, request: LoggedRequest, input_tokens: int, *, source: int) -> tuple[int, ...]:
        """Return one identity for each block of a prompt; () where the log does not show the prompt.

        The last block may be a part of one. Blocks of the length of the prompt that its text does not reach are new.
        """
        needed = math.ceil(input_tokens / self._block_tokens)
        found = list(itertools.islice(self._chain(request, source), needed))
        if not found:
            return ()
        return (*found, *(self._hash(b"fresh", str(next(self._fresh)).encode()) for _ in range(needed - len(found))))

    @staticmethod
    def _scoped(name: str | int, source: int) -> str:
        return f"{source}.{name}" if isinstance(name, int) and name < _LEAST_HASH else str(name)

    def _chain(self, request: LoggedRequest, source: int) -> Iterator[int]:
        before = b""
        for kind, piece in self._pieces(request, source):
            digest = self._digest(kind, before + piece)
            yield _number(digest)
            before = digest

    def _pieces(self, request: LoggedRequest, source: int) -> Iterator[tuple[bytes, bytes]]:
        """Yield what each block of a prompt consists of, and its kind."""
        if request.blocks:
            parts = request.block_tokens // self._block_tokens
            for each in request.blocks:
                name = self._scoped(each, source)
                yield from ((b"block", f"{name}.{part}".encode()) for part in range(parts))
        elif ids := request.prompt_ids:
            for start in range(0, len(ids), self._block_tokens):
                yield b"ids", ",".join(map(str, ids[start : start + self._block_tokens])).encode()
        elif text := request.prompt:
            for start in range(0, len(text), self._characters):
                yield b"text", text[start : start + self._characters].encode("utf-8", "replace")

    def _hash(self, kind: bytes, data: bytes) -> int:
        return _number(self._digest(kind, data))

    def _digest(self, kind: bytes, data: bytes) -> bytes:
        return hashlib.blake2b(data, key=self._salt, person=kind, digest_size=16).digest()


def _number(digest: bytes) -> int:
    return int.from_bytes(digest[:8], "big") >> (64 - HASH_BITS)


def characters_per_token(requests: Iterable[LoggedRequest]) -> float:
    """Return the mean characters of a token in prompts that are texts; the rule of thumb without any."""
    characters = tokens = 0
    for each in requests:
        if each.prompt and not each.prompt_ids:
            characters += len(each.prompt)
            tokens += each.input_tokens or estimated_tokens(each.prompt)
    return characters / tokens if tokens else float(CHARACTERS_PER_TOKEN)
