"""The events of a run. Instants are seconds since the run's origin, amounts are tokens.

A field that is `None` is unknown, never 0: an engine that does not export its queue has `waiting=None`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from servetop.core.arrays import FloatArray, IntArray
from servetop.core.chunk_codec import chunk_sizes_known


class RequestStatus(StrEnum):
    """How a request ended; each status is counted separately."""

    OK = "ok"
    ERROR = "error"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    TRUNCATED = "truncated"
    """The stream ended without its end marker, or was cut off."""


class TokenSource(StrEnum):
    """Where a request's token counts come from, best first."""

    USAGE = "usage"
    """The server's own count."""
    TOKENIZER = "tokenizer"
    """The tokenizer's count of the completion's text."""
    CHUNKS = "chunks"
    """One token for each event with text."""
    ESTIMATE = "estimate"
    """One token for each event with text; the prompt's tokens are an estimate too."""
    DISPUTED = "disputed"
    """The server's own count, which is below the events with text, or above the tokens requested."""


class Action(StrEnum):
    """Commands that a person or a script can send to a live run; SEARCH hands the load to a search or takes it back."""

    SET_RATE = "set_rate"
    SET_CONCURRENCY = "set_concurrency"
    SET_MAX_NUM_SEQS = "set_max_num_seqs"
    HOLD_STAGE = "hold_stage"
    CONTINUE_STAGES = "continue_stages"
    PAUSE_LOAD = "pause_load"
    RESUME_LOAD = "resume_load"
    NEXT_STAGE = "next_stage"
    PREVIOUS_STAGE = "previous_stage"
    """Run the stage before the current one again, and then all that follow it, as new stages."""
    OPEN_LOOP = "open_loop"
    """Send at a rate (the value) regardless of what is in flight: removes the concurrency limit."""
    CLOSE_LOOP = "close_loop"
    """Keep a number of requests (the value) in flight: each is sent when another ends."""
    BURST = "burst"
    SEARCH = "search"
    MARK = "mark"
    STOP = "stop"
    """Send nothing more; let requests in flight finish."""
    CANCEL = "cancel"
    """Stop now; requests in flight are cancelled and recorded as such."""


class Severity(StrEnum):
    """Severity of a note."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RequestRecord:
    """One request from due time to last byte; `sent` and later instants are None if it did not get that far."""

    id: int
    stage: int
    """Index of the stage in which the request was due."""
    due: float
    """When the schedule wanted the request sent."""
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
    """What went wrong, in one line, with the HTTP status if there was one."""
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
    """Id of the first request of its conversation; None outside conversations."""
    turn: int | None = None
    """Turn of its conversation, from 1."""
    first_output_at: float | None = None
    """First token of the answer after reasoning; None without reasoning, or if no answer followed."""
    reasoning_tokens: int | None = None
    """Reasoning tokens among `output_tokens`: the server's count, else counted chunks; None without reasoning."""
    model: str | None = None
    """The requested model of a mix; None if all requests use one model."""
    replica: int | None = None
    """Index of the replica that served it; None with one server or a load balancer."""
    server_queue: float | None = None
    """Seconds in the engine's queue, as reported with the response; None if not reported."""
    server_prefill: float | None = None
    server_decode: float | None = None
    """Seconds from the first token to the last; `server_prefill` is from being scheduled to the first, as reported."""
    required_tokens: int | None = None
    """Output tokens that the request demands whatever the model says (`ignore_eos`, `min_tokens`); None: no demand."""

    @property
    def ttft(self) -> float | None:
        """First token - sent, seconds."""
        return None if self.first_token_at is None or self.sent is None else self.first_token_at - self.sent

    @property
    def ttfot(self) -> float | None:
        """First token of the answer - sent, seconds; TTFT without reasoning; None without an answer."""
        at = self.first_output_at if self.reasoning_tokens else self.first_token_at
        return None if at is None or self.sent is None else at - self.sent

    @property
    def e2el(self) -> float | None:
        """Last byte - sent, seconds."""
        return None if self.done_at is None or self.sent is None else self.done_at - self.sent

    @property
    def chunk_sizes_known(self) -> bool:
        """Whether the tokens of each chunk are known, because they add up to the output tokens."""
        counted = int(self.chunk_tokens.sum())
        return self.token_source is TokenSource.DISPUTED or bool(chunk_sizes_known(self.output_tokens, counted))

    @property
    def tpot(self) -> float | None:
        """(E2E - TTFT) / (output tokens - those of the first chunk), seconds; None if unknown or without later ones."""
        later = self.output_tokens - (int(self.chunk_tokens[0]) if self.chunk_tokens.size else 1)
        if self.ttft is None or self.e2el is None or later < 1 or not self.chunk_sizes_known:
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
    prefix_cache_queries_total: float | None = None
    """Tokens looked up in the prefix cache; `prefix_cache_hits_total` were found."""
    requests_finished_total: float | None = None
    max_num_seqs: float | None = None
    """The engine's batch-size limit."""
    first_token_seconds_total: float | None = None
    """Sum of the engine's own times to first token, of `first_tokens_total` requests."""
    first_tokens_total: float | None = None
    queue_seconds_total: float | None = None
    """Sum of queue times, added when a request ends, of `queued_requests_total` requests."""
    queued_requests_total: float | None = None
    prefill_seconds_total: float | None = None
    """Sum of times from scheduled to first token, added when a request ends, of `prefilled_requests_total` requests."""
    prefilled_requests_total: float | None = None
    tpot_seconds_total: float | None = None
    """Sum of the mean times per output token after the first, of `tpot_requests_total` requests that ended."""
    tpot_requests_total: float | None = None
    e2el_seconds_total: float | None = None
    """Sum of the engine's own times from arrival to the end, of `e2el_requests_total` requests that ended."""
    e2el_requests_total: float | None = None
    requests_ended_total: float | None = None
    requests_failed_total: float | None = None
    """Those of `requests_ended_total` that the server failed or refused; not what clients abort or send wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSample(EngineSample):
    """One scrape of one of several servers; their sum is an `EngineSample`."""

    replica: int
    """Index of the server in `EngineFacts.replica_urls`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSample:
    """One device at one instant: utilisation 0-1, memory in bytes, power in watts, temperature in °C, clocks in Hz."""

    at: float
    index: int
    name: str
    utilisation: float | None = None
    memory_used: int | None = None
    memory_total: int | None = None
    power: float | None = None
    temperature: float | None = None
    sm_clock: float | None = None
    memory_clock: float | None = None
    engine_memory: int | None = None
    """Memory held by the engine's processes; by all processes if the engine was attached to."""
    energy: float | None = None
    """Joules on the device's counter, which restarts with its driver."""
    throttled: str | None = None
    """Why its clocks are throttled, such as `power cap, heat`; empty if they are not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageChange:
    """The start of a stage, or a change within it. Stages follow each other; the last one ends with the run."""

    at: float
    index: int
    label: str
    request_rate: float | None
    """Requests per second; `inf` is "as fast as the concurrency allows"; None is no load (boot, restart, warming)."""
    max_concurrency: int | None
    max_num_seqs: int | None
    repeat: int = 0
    """Repetition of the same cell of a sweep, from 0."""
    warmup: bool = False
    """Its requests are excluded from all totals of the run."""
    ramp_from: float | None = None
    """Rate at the beginning of a ramp, which ends with `request_rate`; None for a constant rate."""
    ramp_strategy: str | None = None  # `linear` or `exponential`
    duration: float | None = None  # planned length in seconds
    num_prompts: int | None = None
    """Planned number of requests; None without one."""
    failure: str | None = None
    """Why the stage could not be measured, or not to its end; None if nothing prevented it."""
    draws: int | None = None
    """Identifies the stage's own prompt stream: with equal seeds, equal ones are equal requests; None: it has none."""
    settings: str | None = None  # JSON of what its cell sets besides the load (`config_values.cell_settings`)


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command to a live run, which sets `applied_at` and `reply` when it has applied it."""

    id: int
    at: float
    action: Action
    value: float | None = None
    text: str = ""
    source: str = ""
    """Origin of the command: `keyboard`, `script`, ..."""
    applied_at: float | None = None
    reply: str | None = None
    """The result, as a sentence for a person; None while pending."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A mark, a warning or an error on the time line, of a source such as `load`, `engine`, `metrics` or `user`."""

    at: float
    severity: Severity
    source: str
    text: str
    fact: str | None = None
    """What `count` counts, such as `rows_skipped`, of `subject` if there are several; None: nothing, or before 1.12."""
    subject: str | None = None
    count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One line of an engine's output, without its newline."""

    at: float
    text: str
    stream: str = "engine"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """How the run ended; `reason` is one line, empty for success."""

    at: float
    exit_code: int
    reason: str
