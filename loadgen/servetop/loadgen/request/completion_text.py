"""The text of one completion as it arrives, with and without the model's reasoning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from servetop.core.interfaces.dialect import Chunk

if TYPE_CHECKING:
    from servetop.workload.prompts.local_tokenizer import LocalTokenizer


class CompletionText:
    """Collects text chunk by chunk. Reasoning is separated only if the server marks it as such."""

    __slots__ = ("_answer_parts", "_parts", "recorded", "tokenizer")

    def __init__(self, *, tokenizer: LocalTokenizer | None = None, recorded: bool = False) -> None:
        self.tokenizer = tokenizer
        """Counts the tokens if the server does not."""
        self.recorded = recorded
        """Store the text in the recording, with the prompt."""
        self._parts: list[str] = []
        self._answer_parts: list[str] | None = None
        """The parts without reasoning; None until a chunk contains reasoning."""

    def add(self, chunk: Chunk) -> None:
        """Append the chunk's text."""
        if self._answer_parts is None and (chunk.reasoning or chunk.reasoning_chars):
            self._answer_parts = self._parts.copy()
        self._parts.append(chunk.text)
        if self._answer_parts is not None:
            self._answer_parts.append(chunk.answer)

    @property
    def full(self) -> str:
        """Reasoning and answer in order of arrival; a chunk that contains both has its answer first."""
        return "".join(self._parts)

    @property
    def answer(self) -> str:
        """The text without the model's reasoning, as it belongs in a conversation's history."""
        return "".join(self._parts if self._answer_parts is None else self._answer_parts)
