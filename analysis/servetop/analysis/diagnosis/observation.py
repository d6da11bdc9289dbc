"""What may be observed of a run; verdicts and stories say only what follows from it."""

from __future__ import annotations

from enum import StrEnum


class Observation(StrEnum):
    """One thing that may be known about a run, or about two that are compared, or not."""

    QUEUE = "the engine's queue"
    RUNNING = "its running sequences"
    KV = "its KV usage"
    KV_BLOCKS = "its number of KV blocks"
    BATCH_LIMIT = "its batch limit"
    PREEMPTIONS = "its preemptions"
    PREFIX_CACHE = "its prefix-cache counters"
    ENGINE_TTFT = "its own TTFT"
    GPU = "GPU clocks"
    TTFT = "TTFT at the client"
    FIRST_TOKENS = "first tokens of streamed responses"
    COMPLETIONS = "completed requests"
    FAILURES = "failed requests"
    IN_FLIGHT = "requests in flight"
    CLIENT_QUEUE = "requests queued at the client"
    REPLICAS = "metrics of every replica"
    MANAGED = "an engine that servetop started, without a network between"
    TARGET_RATE = "an offered rate"
    OBJECTIVES = "objectives"
    STEADY_WINDOW = "a steady window within the objectives"
    BOTH_FIGURES = "the figure of both runs"
    ERROR = "the error of the difference"
    STAGE_LENGTH = "the length of the stage in both runs"
