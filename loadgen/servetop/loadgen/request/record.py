"""Builds the RequestRecord of a request that has ended."""

from __future__ import annotations

from servetop.core.arrays import IntArray
from servetop.core.chunk_codec import TEXTLESS_FRACTION, chunk_sizes_known
from servetop.core.events import RequestRecord, TokenSource
from servetop.core.interfaces.dialect import ServerTiming
from servetop.loadgen.request.request_state import RequestState
from servetop.workload.prompts.conversation_scripts import TurnPrompt

MIN_UNIFORM_CHUNKS = 10
"""Chunks whose texts must have equal lengths before that shows that they carry equally many tokens."""
_MIN_TOKEN_BYTES = 2
"""Minimum mean length of a token in bytes, in texts of several tokens each."""


def build_record(request: RequestState, *, worker: int) -> RequestRecord:
    """Return the record of a request that has ended; ValueError if it has not."""
    if request.status is None:
        raise ValueError(f"request {request.id} has not ended")
    recorded = request.text if request.text is not None and request.text.recorded else None
    turn = request.prompt if isinstance(request.prompt, TurnPrompt) else None
    timing = request.timing or ServerTiming()
    return RequestRecord(
        id=request.id,
        stage=request.stage,
        due=request.due_at,
        sent=request.sent,
        headers_at=request.headers_at,
        first_token_at=request.first_token_at,
        done_at=request.done_at,
        prompt_tokens=request.prompt_tokens,
        output_tokens=request.completion_tokens,
        cached_tokens=request.cached_tokens,
        status=request.status,
        error=request.error,
        http_status=request.http_status,
        worker=worker,
        token_source=_token_source(request),
        chunk_times=request.chunks.times(),
        chunk_tokens=_chunk_tokens(request),
        prompt_text=None if recorded is None else request.prompt.recorded_text,
        output_text=None if recorded is None else recorded.full,
        conversation=None if turn is None else request.conversation,
        turn=None if turn is None else turn.turn,
        model=request.prompt.model,
        replica=request.replica,
        required_tokens=request.required_tokens or None,
        reasoning_tokens=reasoning_tokens(request) or None,
        first_output_at=_first_output_at(request),
        server_queue=timing.queue,
        server_prefill=timing.prefill,
        server_decode=timing.decode,
    )


def _token_source(request: RequestState) -> TokenSource:
    """Return the best source of both counts: the server's usage, else our own count, else an estimated prompt."""
    reported = request.output_tokens
    if reported is not None:
        too_many = 0 < request.max_tokens < reported
        too_few = request.chunks.tokens > reported * (1 + TEXTLESS_FRACTION) + 1
        return TokenSource.DISPUTED if too_many or too_few else TokenSource.USAGE
    if not (request.prompt.token_ids is not None or request.prompt.counted):
        return TokenSource.ESTIMATE
    return TokenSource.CHUNKS if request.text is None or request.text.tokenizer is None else TokenSource.TOKENIZER


def _chunk_tokens(request: RequestState) -> IntArray:
    """Return the tokens of each chunk; if only their sum is known, one each, unless the true counts can be proved.

    They can be proved for a single chunk, and for enough chunks whose texts have equal lengths. Reasoning tokens that
    the server counts but does not send were generated before the first chunk, and are counted with it.
    """
    reported, chunks = request.output_tokens, request.chunks
    counts = chunks.counts()
    if reported is None or not len(chunks) or chunk_sizes_known(reported, chunks.tokens):
        return counts
    hidden = 0 if request.reasoning_tokens else request.reported_reasoning_tokens or 0
    visible = reported - hidden
    if not (visible >= chunks.tokens and chunk_sizes_known(visible, chunks.tokens)):
        proved = _uniform_counts(request, visible)
        if proved is None:
            return counts
        counts = proved
    counts[0] += hidden
    return counts


def _uniform_counts(request: RequestState, tokens: int) -> IntArray | None:
    """Return the equal token counts of the chunks, the last one possibly smaller; None if they are not proved.

    Equal lengths of a few texts are a coincidence, and a text is no shorter than its tokens: the server would have
    counted tokens that it did not send.
    """
    counts = request.chunks.uniform_counts(tokens)
    if counts is None or len(counts) == 1:
        return counts
    sizes = request.parser.equal_text_sizes()
    if sizes is None or len(counts) < MIN_UNIFORM_CHUNKS:
        return None
    fits = counts[0] * _MIN_TOKEN_BYTES <= sizes[0] and counts[-1] <= sizes[1]
    return counts if fits else None


def reasoning_tokens(request: RequestState) -> int:
    """Return the server's count of reasoning tokens if it is above 0, else that of the chunks."""
    return request.reported_reasoning_tokens or request.reasoning_tokens


def _first_output_at(request: RequestState) -> float | None:
    """Return when the answer began, None without reasoning; if that is counted but hidden, with the first token."""
    if not reasoning_tokens(request):
        return None
    return request.first_output_at if request.reasoning_tokens > 0 else request.first_token_at
