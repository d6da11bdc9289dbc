"""One request as the server under test received it, and the means to answer it."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.chaos.ledger import What


@dataclass(eq=False)
class Request:
    """One request for an answer, and the means to give it."""

    number: int
    content: dict[str, Any]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    chat: bool = False
    """Sent to the chat endpoint."""
    sent: int = 0
    """Tokens that went out."""
    before_end: Callable[[], None] = lambda: None
    """Called before the last bytes of an honest answer."""

    @property
    def wanted(self) -> int:
        """Requested tokens."""
        return int(self.content.get("max_tokens") or self.content.get("max_completion_tokens") or 8)

    @property
    def usage_wanted(self) -> bool:
        return bool((self.content.get("stream_options") or {}).get("include_usage"))

    @property
    def usage_in_each(self) -> bool:
        return bool((self.content.get("stream_options") or {}).get("continuous_usage_stats"))

    async def raw(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def flood(self, piece: bytes, *, total: int) -> None:
        """Until somebody closes the connection."""
        for _ in range(max(1, total // len(piece))):
            if self.writer.is_closing():
                return
            await self.raw(piece)

    def usage(self, tokens: int) -> dict[str, Any]:
        prompt = self.content.get("prompt")
        length = len(prompt) if isinstance(prompt, list) else 8
        return {"prompt_tokens": length, "completion_tokens": tokens, "total_tokens": length + tokens}

    def word(self, number: int) -> str:
        """The first word of an answer names the request, for who stores texts."""
        return f" r{self.number}" if number == 0 else f" w{number}"

    def event(self, text: str, *, tokens: int, finish: str | None = None) -> bytes:
        part = {"delta": {"content": text}} if self.chat else {"text": text}
        content: dict[str, Any] = {
            "id": f"cmpl-{self.number}",
            "object": "chat.completion.chunk" if self.chat else "text_completion",
            "model": "tiny",
            "choices": [{"index": 0, **part, "finish_reason": finish}],
        }
        if self.usage_in_each:
            content["usage"] = self.usage(tokens)
        return b"data: " + json.dumps(content).encode() + b"\n\n"

    def last_usage(self) -> bytes:
        """Empty unless requested."""
        if not self.usage_wanted:
            return b""
        return b"data: " + json.dumps({"choices": [], "usage": self.usage(self.sent)}).encode() + b"\n\n"


@dataclass(frozen=True)
class Settings:
    """The command line."""

    ledger: Path
    port: int
    mode: str
    page: str
    seed: int
    gap: float
    first: float
    boot: float
    stop: float
    tls: str
    ssl: ssl.SSLContext | None = None


Answer = Callable[[Request, Settings], Awaitable[What]]
"""Gives one answer, and says what an honest client must make of it."""
