"""What the record of a request says of its tokens and its server's times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from servetop.core.arrays import IntArray
from servetop.core.chunk_codec import TEXTLESS_FRACTION, chunk_sizes_known
from servetop.core.events import TokenSource
from servetop.core.interfaces.dialect import ServerTiming

if TYPE_CHECKING:
    from servetop.loadgen.request.request_state import RequestState


def token_source(exchange: RequestState) -> TokenSource:
    """Best knowledge of both counts: the server's usage, else our own count, else an estimated prompt."""
    told = exchange.output_tokens
    if told is not None:
        too_many = 0 < exchange.most_tokens < told
        too_few = exchange.chunks.tokens > told * (1 + TEXTLESS_FRACTION) + 1
        return TokenSource.DISPUTED if too_many or too_few else TokenSource.USAGE
    if not (exchange.prompt.token_ids is not None or exchange.prompt.counted):
        return TokenSource.ESTIMATE
    return TokenSource.CHUNKS if exchange.text is None or exchange.text.tokenizer is None else TokenSource.TOKENIZER


def chunk_tokens(exchange: RequestState) -> IntArray:
    """Tokens of each chunk. Where only their sum is known, they are as counted, and do not add up, unless it is proved.

    It is proved for a chunk that is alone, and for chunks whose texts all have one length, which only the last may fall
    short of: then all but the last bring equally many.
    """
    told, chunks = exchange.output_tokens, exchange.chunks
    if told is None or chunk_sizes_known(told, chunks.tokens):
        return chunks.counts()
    proved = len(chunks) == 1 or exchange.parser.even_texts()
    even = chunks.even_counts(told) if proved else None
    return chunks.counts() if even is None else even


def timing_of(timing: ServerTiming | None) -> dict[str, Any]:
    """A record's fields about the server's own times."""
    if timing is None:
        return {}
    return {"server_queue": timing.queue, "server_prefill": timing.prefill, "server_decode": timing.decode}


def reasoning_of(exchange: RequestState) -> dict[str, Any]:
    """A record's fields about reasoning; where it was counted but not shown, the first token is the answer's."""
    tokens = exchange.reasoning_told or exchange.reasoning_tokens
    if not tokens:
        return {}
    seen = exchange.reasoning_tokens > 0
    return {
        "reasoning_tokens": tokens,
        "first_output_at": exchange.first_output_at if seen else exchange.first_token_at,
    }
