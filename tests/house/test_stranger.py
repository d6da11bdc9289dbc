"""A stranger's questions: a search for the field's term leads to the code in at most three files, one of them right.

The terms are those that an engineer chose for the questions without having seen the code.
"""

from __future__ import annotations

import subprocess

import pytest

from tests.house.source_tree import ROOMS, TOP

MOST_FILES = 3

QUESTIONS = (
    ("Where is the retry policy of a request?", "retry policy", "loadgen.transport.raw_transport"),
    ("Where is a request's timeout enforced?", "request timeout", "loadgen.sender.cancellation"),
    ("Where are the TTFT percentiles computed?", "ttft percentile", "analysis.summary.request_metrics"),
    ("What resumes an interrupted sweep?", "interrupted sweep", "run.sweep.resume_sweep"),
    ("Which file parses server-sent events?", "sse parser", "engines.dialects.sse"),
    ("Where do I add a dashboard panel?", "class Panel(", "tui.panels.panel"),
    ("Where do I add support for a new engine?", "class Engine(", "engines.engine"),
    ("Which Prometheus series feeds which field?", "class MetricMap", "engines.metrics.metrics_reader"),
    ("How is coordinated omission avoided?", "coordinated omission", "loadgen.pacing"),
    ("Where is the HTTP connection pool?", "connection pool", "loadgen.transport.connection_pool"),
    ("Where is the client's concurrency limit enforced?", "enforces max_concurrency", "workload.client.user_slots"),
    ("Where is the engine's health check?", "health check succeeds", "engines.start"),
    ("What waits until the engine is ready?", "wait_until_ready", "engines.start"),
    ("What kills the engine if the run process dies?", "PDEATHSIG", "engines.process.watchdog"),
    ("Where is an engine shut down gracefully?", "SIGTERM and SIGKILL", "engines.process.engine_process"),
    ("Where is the backoff when all requests fail?", "backoff", "workload.client.backoff"),
    ("Which exit codes exist?", "class ExitCode", "core.errors"),
    ("How does the simulator price one iteration?", "roofline", "simulator.model.cost"),
    ("What happens to a preempted sequence?", "preemption polic", "simulator.policies.preemption"),
    ("Where is the prefix cache simulated?", "class PrefixCache", "simulator.scheduling.prefix_cache"),
    ("Where is chunked prefill simulated?", "chunked prefill", "simulator.policies.iteration"),
    ("Where is the SQLite schema of a recording?", "CREATE TABLE", "recordings.format.schema"),
    ("How does a viewer notice that a recording grew?", "data_version", "recordings.read.table_reader"),
    ("Where are Poisson arrivals generated?", "poisson process", "workload.arrivals.arrival_process"),
    ("Where is user think time of a closed loop?", "think time", "workload.client.user_slots"),
    ("Where is Little's law checked?", "class LittlesLaw", "analysis.trust.consistency"),
    ("Where is the steady state detected?", "steady-state detection", "analysis.trust.steady_state"),
    ("Which vLLM metric names are read?", "vllm:num_requests_running", "engines.metrics.vllm_metrics"),
    ("Where is event-loop lag measured?", "event-loop lag", "loadgen.sender.heartbeat"),
    ("Which histogram holds latencies?", "class LogHistogram", "core.histogram"),
    ("Where are secrets redacted?", "class Redactor", "core.text.redaction"),
    ("Where is GPU energy integrated?", "class EnergyMeter", "analysis.energy"),
    ("How are requests balanced over replicas?", "round-robin load balanc", "loadgen.transport.replica_transport"),
    ("Where is a tokenizer used for exact lengths?", "/tokenize`", "loadgen.transport.remote_tokenizer"),
    ("Where are weighted percentiles computed?", "weighted percentile", "analysis.statistics.percentiles"),
    ("Where is shell completion?", "shell completion", "cli.options.completions"),
    ("Where is the simulated KV cache size computed?", "kv cache size: ", "simulator.model.kv_capacity"),
    ("Where are key bindings declared?", "key binding", "tui.keys"),
    ("Where is the goodput computed?", "slo attainment", "analysis.goodput"),
)


@pytest.mark.parametrize(("question", "term", "module"), QUESTIONS, ids=[each[0] for each in QUESTIONS])
def test_a_search_for_the_term_finds_the_code(question: str, term: str, module: str) -> None:
    argv = ["grep", "-rilF", "--include=*.py", "-e", term, *ROOMS]
    found = subprocess.run(argv, capture_output=True, text=True, cwd=TOP, check=False).stdout.split()
    room, _, _ = module.partition(".")
    assert f"{room}/servetop/{module.replace('.', '/')}.py" in found, f"{question} {term!r} is in {found}"
    assert len(found) <= MOST_FILES, f"{question} {term!r} is in {found}"
