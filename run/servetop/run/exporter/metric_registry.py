"""Every metric of a live run, declared once: the page of metrics, its docs and the dashboards follow from here.

Names, units, labels and bounds are those of the semantic conventions for generative AI (OpenTelemetry), as their
translation to Prometheus gives them, where the conventions have the metric; all others begin with `servetop_`.
"""

from __future__ import annotations

from collections.abc import Mapping

from servetop.analysis.diagnosis.diagnosis import Bottleneck
from servetop.analysis.trust.trust_verdict import TrustVerdict
from servetop.core.events import RequestStatus
from servetop.core.interfaces.replica_change import ReplicaState
from servetop.run.exporter.live_metric import LiveMetric, LiveMetricKind
from servetop.run.outcome import RunPhase

GEN_AI_LABELS = ("gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model")
TOKEN_TYPE = "gen_ai_token_type"
OPERATION_BOUNDS = tuple(round(0.01 * 2**power, 2) for power in range(17))
"""Seconds: 0.01 to 81.92 of the conventions, and three more up to 655.36 for requests of an overloaded server."""
TOKEN_BOUNDS = tuple(float(4**power) for power in range(9))
"""Tokens: those of the conventions, 1 to 65,536; larger ones are beyond what the histogram of a tick distinguishes."""
PER_TOKEN_BOUNDS = (
    0.001, 0.0025, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5,
    0.75, 1.0, 2.5, 5.0, 10.0,
)  # fmt: skip
"""Seconds: those of the conventions for a server's time per output token, and more at both ends."""
LATENESS_BOUNDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Seconds: from what a clock resolves to ten seconds."""


def _counter(name: str, text: str, *labels: str, unit: str = "") -> LiveMetric:
    return LiveMetric(name=f"{name}_total", kind=LiveMetricKind.COUNTER, help=text, labels=labels, unit=unit)


def _gauge(name: str, text: str, *labels: str, unit: str = "") -> LiveMetric:
    return LiveMetric(name=name, kind=LiveMetricKind.GAUGE, help=text, labels=labels, unit=unit)


def _seconds(name: str, text: str, bounds: tuple[float, ...], labels: tuple[str, ...] = GEN_AI_LABELS) -> LiveMetric:
    return LiveMetric(name=name, kind=LiveMetricKind.HISTOGRAM, help=text, labels=labels, unit="seconds", bounds=bounds)


def _info(name: str, text: str, *labels: str) -> LiveMetric:
    return LiveMetric(name=f"{name}_info", kind=LiveMetricKind.INFO, help=text, labels=labels)


def _states(name: str, text: str, states: tuple[str, ...], *labels: str) -> LiveMetric:
    return LiveMetric(name=name, kind=LiveMetricKind.STATE_SET, help=text, labels=(*labels, name), states=states)


BUILD = _info("servetop_build", "Version of servetop and of Python.", "version", "python_version")
RUN = _info(
    "servetop_run", "The run that this process executes.", "mode", "engine", "engine_version", "model", "label",
    "recording",
)  # fmt: skip
STARTED = _gauge("servetop_run_start_time_seconds", "Time at which the run began, Unix time.", unit="seconds")
PHASE = _states("servetop_run_phase", "What the run is doing.", tuple(RunPhase))

STAGE = _gauge("servetop_stage_index", "Index of the stage in force, from 0; -1 before the load begins.")
STAGE_INFO = _info("servetop_stage", "The load of the stage in force.", "stage", "stage_label")
TARGET_RATE = _gauge(
    "servetop_target_requests_per_second", "Request rate that the load asks for; not with a closed loop."
)
MAX_CONCURRENCY = _gauge("servetop_max_concurrency", "Limit of the requests in flight; not without one.")
IN_FLIGHT = _gauge("servetop_requests_in_flight", "Requests sent that have not ended.")
QUEUED = _gauge("servetop_requests_queued", "Requests due that wait for the concurrency limit.")
PAUSED = _gauge("servetop_load_paused", "1 while the load is paused, else 0.")

OFFERED = _counter("servetop_offered_requests", "Requests that were due, sent or not.")
SENT = _counter("servetop_sent_requests", "Requests that were sent.")
REQUESTS = _counter(
    "servetop_requests",
    "Requests that ended, by how. Those of warm-ups are in no total of a summary.",
    "status",
    "warmup",
)
REQUEST_TOKENS = _counter("servetop_request_tokens", "Tokens of the requests that succeeded.", TOKEN_TYPE, "warmup")
PROMPT_TOKENS = _counter("servetop_prompt_tokens", "Prompt tokens of the requests whose first token arrived.")
OUTPUT_TOKENS = _counter("servetop_output_tokens", "Tokens that arrived, also of requests that are still in flight.")
CHUNKS = _counter("servetop_chunks", "Chunks of responses that arrived.")
CLIENT_CPU = _counter("servetop_client_cpu_seconds", "Processor time of the sender processes.", unit="seconds")
GOOD = _counter("servetop_good_requests", "Requests that met every objective; only with objectives.")
JUDGED = _counter(
    "servetop_judged_requests",
    "Requests that succeeded or failed, and so met the objectives or missed them; only with objectives.",
)
OBJECTIVE = _gauge("servetop_objective_seconds", "Limit of an objective (--goodput).", "objective", unit="seconds")

DURATION = _seconds(
    "gen_ai_client_operation_duration_seconds", "E2EL: request sent to last byte, of requests that succeeded.",
    OPERATION_BOUNDS,
)  # fmt: skip
TTFT = _seconds(
    "gen_ai_client_operation_time_to_first_chunk_seconds",
    "TTFT: request sent to the first chunk with content, when it arrives; only for streams.", OPERATION_BOUNDS,
)  # fmt: skip
TTFT_DUE = _seconds(
    "servetop_time_to_first_token_from_due_seconds",
    "TTFT from the time at which the request was due: as the user felt it.", OPERATION_BOUNDS,
)  # fmt: skip
ITL = _seconds(
    "servetop_inter_token_latency_seconds",
    "ITL: gap between chunks / tokens of the later chunk, counted once for each of those tokens.", PER_TOKEN_BOUNDS,
)  # fmt: skip
TPOT = _seconds(
    "servetop_time_per_output_token_seconds",
    "TPOT: (E2EL - TTFT) / (output tokens - those of the first chunk), of requests that succeeded.", PER_TOKEN_BOUNDS,
)  # fmt: skip
TOKEN_USAGE = LiveMetric(
    name="gen_ai_client_token_usage", kind=LiveMetricKind.HISTOGRAM, bounds=TOKEN_BOUNDS,
    help="Tokens of each request that succeeded, in prompt and output.", labels=(*GEN_AI_LABELS, TOKEN_TYPE),
)  # fmt: skip
SLIP = _seconds(
    "servetop_send_slip_seconds", "Lateness of requests: sent - due, without those that waited for the limit.",
    LATENESS_BOUNDS, (),
)  # fmt: skip
CLIENT_WAIT = _seconds(
    "servetop_client_queue_seconds", "Time that requests waited for the concurrency limit.", OPERATION_BOUNDS, ()
)
LOOP_LAG = _seconds(
    "servetop_event_loop_lag_seconds", "Lateness of a 20 ms heartbeat in the senders' event loops.",
    LATENESS_BOUNDS, (),
)  # fmt: skip

TRUST = _states("servetop_trust", "Whether the client's figures of the last 10 s can be trusted.", tuple(TrustVerdict))
LITTLES_LAW = _gauge(
    "servetop_littles_law_error_ratio",
    "Requests in the engine (running and waiting) / requests in flight at the client - 1, over the last 10 s.",
    unit="ratio",
)  # fmt: skip
TOKEN_ERROR = _gauge(
    "servetop_token_count_error_ratio", "Tokens that the engine counts / tokens that arrived - 1, over the last 10 s.",
    unit="ratio",
)  # fmt: skip
VERDICT = _states("servetop_verdict", "What limits throughput, by the last 10 s and the run so far.", tuple(Bottleneck))

SERVER_UP = _gauge(
    "servetop_server_up", "1 if the metrics of the server were read within the last 5 s, else 0.", "server"
)
SERVER_RUNNING = _gauge("servetop_server_requests_running", "Requests that the server is computing.", "server")
SERVER_WAITING = _gauge("servetop_server_requests_waiting", "Requests in the queue of the server.", "server")
SERVER_KV = _gauge(
    "servetop_server_kv_cache_usage_ratio", "Share of the server's KV cache in use, 0 to 1.", "server", unit="ratio"
)
SERVER_STATE = _states(
    "servetop_server_state", "State of each of several watched servers.", tuple(ReplicaState), "server"
)

OF_EVERY_RUN = (BUILD, RUN, STARTED, PHASE, VERDICT)
OF_SERVERS = (SERVER_UP, SERVER_RUNNING, SERVER_WAITING, SERVER_KV)
OF_WATCHES = (SERVER_STATE,)
LOAD_GAUGES: Mapping[LiveMetric, str] = {
    STAGE: "stage", TARGET_RATE: "request_rate", MAX_CONCURRENCY: "max_concurrency", IN_FLIGHT: "in_flight",
    QUEUED: "queued", PAUSED: "paused",
}  # fmt: skip
"""Metrics that are fields of LoadGauges."""
TICK_COUNTERS: Mapping[LiveMetric, str] = {
    OFFERED: "due", SENT: "sent", PROMPT_TOKENS: "prompt_tokens", OUTPUT_TOKENS: "output_tokens", CHUNKS: "chunks",
    CLIENT_CPU: "cpu_seconds", GOOD: "good", JUDGED: "judged",
}  # fmt: skip
"""Metrics that are sums of fields of ClientTick."""
TICK_HISTOGRAMS: Mapping[LiveMetric, str] = {
    DURATION: "e2el", TTFT: "ttft", TTFT_DUE: "ttft_due", ITL: "itl", TPOT: "tpot", SLIP: "slip",
    CLIENT_WAIT: "client_wait", LOOP_LAG: "loop_lag",
}  # fmt: skip
"""Metrics that are histograms of ClientTick."""
OF_LOADS = (
    STAGE_INFO, *LOAD_GAUGES, *TICK_COUNTERS, REQUESTS, REQUEST_TOKENS, OBJECTIVE, *TICK_HISTOGRAMS, TOKEN_USAGE,
    TRUST, LITTLES_LAW, TOKEN_ERROR,
)  # fmt: skip
METRICS = (*OF_EVERY_RUN, *OF_LOADS, *OF_SERVERS, *OF_WATCHES)
STATUSES = tuple(RequestStatus)
