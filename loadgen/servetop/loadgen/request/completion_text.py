"""The text of one answer as it comes: all of it, and what of it was said to the user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from servetop.core.interfaces.dialect import Chunk

if TYPE_CHECKING:
    from servetop.workload.prompts.local_tokenizer import LocalTokenizer


class CompletionText:
    """Grows chunk by chunk. What a server sends as reasoning is told apart; what it leaves in the answer is not."""

    __slots__ = ("_answers", "_pieces", "recorded", "tokenizer")

    def __init__(self, *, tokenizer: LocalTokenizer | None = None, recorded: bool = False) -> None:
        self.tokenizer = tokenizer
        """Counts it where the server does not."""
        self.recorded = recorded
        """It goes into the recording, and the question with it."""
        self._pieces: list[str] = []
        self._answers: list[str] | None = None
        """Once a chunk had reasoning."""

    def add(self, chunk: Chunk) -> None:
        """The next chunk; its text is the next piece."""
        if self._answers is None and (chunk.reasoning or chunk.thoughts):
            self._answers = self._pieces.copy()
        self._pieces.append(chunk.text)
        if self._answers is not None:
            self._answers.append(chunk.answer)

    @property
    def whole(self) -> str:
        """Reasoning and answer as they came; of a chunk that has both, the answer first."""
        return "".join(self._pieces)

    @property
    def answer(self) -> str:
        """Without the reasoning: what belongs into a conversation's history."""
        return "".join(self._pieces if self._answers is None else self._answers)
