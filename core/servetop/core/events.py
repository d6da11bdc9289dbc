"""What can happen in a run. Instants are seconds since the run's origin, amounts are tokens.

A field that is `None` is not known, never 0: an engine that does not export its queue has `waiting=None`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from servetop.core.arrays import FloatArray, IntArray


class RequestStatus(StrEnum):
    """How a request ended; each is counted apart."""

    OK = "ok"
    ERROR = "error"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    TRUNCATED = "truncated"
    """The stream ended without its end marker, or broke off in the middle."""


class TokenSource(StrEnum):
    """Where a request's token counts come from, best first."""

    USAGE = "usage"
    """The server's own count."""
    TOKENIZER = "tokenizer"
    """The answer's text, counted here."""
    CHUNKS = "chunks"
    """One for each event with text."""
    ESTIMATE = "estimate"
    """The same, and the prompt's tokens are an estimate too."""
    DISPUTED = "disputed"
    """The server's own count, which is below the events with text, or above what was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RequestRecord:
    """One request from due time to last byte. `sent` and what follows is None when it did not get that far."""

    id: int
    stage: int
    """Index of the stage in whose time the request was due."""
    due: float
    """When the schedule wanted it sent."""
    sent: float | None = None
    """When its bytes were handed to the socket; `sent - due` is the slip."""
    headers_at: float | None = None
    first_token_at: float | None = None
    done_at: float | None = None
    prompt_tokens: int
    output_tokens: int = 0
    cached_tokens: int | None = None
    status: RequestStatus
    error: str | None = None
    """One line: what went wrong, with the HTTP status where there was one."""
    http_status: int | None = None
    worker: int = 0
    token_source: TokenSource = TokenSource.USAGE
    chunk_times: FloatArray
    """Arrival of every content chunk, ascending; shape (chunks,)."""
    chunk_tokens: IntArray
    """Tokens that each chunk carried; shape (chunks,)."""
    prompt_text: str | None = None
    """Only with `--store-texts`."""
    output_text: str | None = None
    conversation: int | None = None
    """Id of the first request of the conversation that it is a turn of; None: of none."""
    turn: int | None = None
    """Which turn of its conversation, from 1."""
    first_output_at: float | None = None
    """First token of the answer itself, of a request that reasoned; None: it did not, or did nothing else."""
    reasoning_tokens: int | None = None
    """Of `output_tokens`: by the server's count, else those that came as reasoning; None: no reasoning."""
    model: str | None = None
    """Which of several models was asked; None where all requests asked the same."""
    replica: int | None = None
    """Which of several servers it went to, from 0; None where there is one, or a front door."""
    server_queue: float | None = None
    """Seconds that it waited to be scheduled, as its server told with the answer; None: it does not tell."""
    server_prefill: float | None = None
    """Seconds from being scheduled to the first token, as told."""
    server_decode: float | None = None
    """Seconds from the first token to the last, as told."""

    @property
    def ttft(self) -> float | None:
        """First token - sent, seconds."""
        return None if self.first_token_at is None or self.sent is None else self.first_token_at - self.sent

    @property
    def ttfot(self) -> float | None:
        """First token of the answer itself - sent, seconds; TTFT where the model did not reason; None: no answer."""
        at = self.first_output_at if self.reasoning_tokens else self.first_token_at
        return None if at is None or self.sent is None else at - self.sent

    @property
    def e2el(self) -> float | None:
        """Last byte - sent, seconds."""
        return None if self.done_at is None or self.sent is None else self.done_at - self.sent

    @property
    def tpot(self) -> float | None:
        """(E2E - TTFT) / (output tokens - those of the first chunk), seconds; None where no token came later."""
        later = self.output_tokens - (int(self.chunk_tokens[0]) if self.chunk_tokens.size else 1)
        if self.ttft is None or self.e2el is None or later < 1:
            return None
        return (self.e2el - self.ttft) / later


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSample:
    """One scrape of an engine's metrics; None is "not exported by this engine"."""

    scrape_start: float
    scrape_end: float
    running: float | None = None
    waiting: float | None = None
    kv_blocks_used: float | None = None
    kv_blocks_total: float | None = None
    kv_usage: float | None = None
    """Share of KV blocks in use, 0-1."""
    preemptions_total: float | None = None
    prompt_tokens_total: float | None = None
    generation_tokens_total: float | None = None
    prefix_cache_hits_total: float | None = None
    """Tokens found in the prefix cache."""
    prefix_cache_queries_total: float | None = None
    """Tokens looked up in the prefix cache."""
    requests_finished_total: float | None = None
    max_num_seqs: float | None = None
    """The engine's batch-size limit, where it tells."""
    first_token_seconds_total: float | None = None
    """The engine's own times to first token, summed; of requests whose first token came, as `first_tokens_total`."""
    first_tokens_total: float | None = None
    queue_seconds_total: float | None = None
    """Times that requests waited to be scheduled, summed when they end; of `queued_requests_total`."""
    queued_requests_total: float | None = None
    prefill_seconds_total: float | None = None
    """Times from being scheduled to the first token, summed when they end; of `prefilled_requests_total`."""
    prefilled_requests_total: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSample(EngineSample):
    """One scrape of one of several servers, as it told it; their sum is an `EngineSample`."""

    replica: int
    """Which, from 0, in the order of `EngineFacts.replica_urls`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSample:
    """One device at one instant."""

    at: float
    index: int
    name: str
    utilisation: float | None = None
    """0-1."""
    memory_used: int | None = None
    """Bytes."""
    memory_total: int | None = None
    power: float | None = None
    """Watts."""
    temperature: float | None = None
    """°C."""
    sm_clock: float | None = None
    """Hz."""
    memory_clock: float | None = None
    engine_memory: int | None = None
    """Bytes that the engine's own processes hold; of an engine that was attached to: those of all processes."""
    energy: float | None = None
    """Joules since some instant in the past: the card's own counter, which starts again with its driver."""
    throttled: str | None = None
    """Why its clocks are held down, in words, as `power cap, heat`; empty when they are not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageChange:
    """A stage began. Stages follow each other; the last one ends with the run."""

    at: float
    index: int
    label: str
    request_rate: float | None
    """Requests per second; `inf` is "as fast as the concurrency allows"; None is no load (boot, restart)."""
    max_concurrency: int | None
    max_num_seqs: int | None
    repeat: int = 0
    """Which repetition of the same cell of a sweep this is, from 0."""
    warmup: bool = False
    """Its requests count in no total of the run."""


class Action(StrEnum):
    """What a person, or a script, can ask of a running run."""

    SET_RATE = "set_rate"
    SET_CONCURRENCY = "set_concurrency"
    SET_MAX_NUM_SEQS = "set_max_num_seqs"
    HOLD_STAGE = "hold_stage"
    CONTINUE_STAGES = "continue_stages"
    PAUSE_LOAD = "pause_load"
    RESUME_LOAD = "resume_load"
    NEXT_STAGE = "next_stage"
    PREVIOUS_STAGE = "previous_stage"
    """Play the stage before the one in force again, and then all that follow it, as new stages."""
    OPEN_LOOP = "open_loop"
    """Send at a rate, the value, whatever is in flight: lifts the concurrency limit."""
    CLOSE_LOOP = "close_loop"
    """Keep a number of requests, the value, in flight: each is sent when another ends."""
    BURST = "burst"
    MARK = "mark"
    STOP = "stop"
    """Send nothing more, let what is in flight finish."""
    CANCEL = "cancel"
    """Stop now; requests in flight are cancelled and recorded as such."""


class Severity(StrEnum):
    """How loud a note is."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One request to change the run; `obeyed_at` and `reply` are filled in by the run when it has acted."""

    id: int
    at: float
    action: Action
    value: float | None = None
    text: str = ""
    source: str = ""
    """Who asked: `keyboard`, `script`, ..."""
    obeyed_at: float | None = None
    reply: str | None = None
    """What became of it, in words for a person; None while it is pending."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something worth seeing on the time line: a mark, a warning, an error."""

    at: float
    severity: Severity
    source: str
    """Which part speaks: `load`, `engine`, `metrics`, `recorder`, `user`."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One line of an engine's output, without its newline."""

    at: float
    text: str
    stream: str = "engine"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """How the run ended."""

    at: float
    exit_code: int
    reason: str
    """One line; empty when all went as planned."""
