"""Validates a workload before a run starts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from servetop.core.config import CONVERSATIONS, RANDOM, StageConfig, WorkloadConfig
from servetop.core.errors import UsageError
from servetop.workload.arrivals.arrival_spec import FASTEST_SPACED, RAMPABLE_ARRIVALS, parse_arrivals
from servetop.workload.client.user_slots import parse_think_time
from servetop.workload.datasets.catalogue import CORPORA, TRACES, check_dataset_name, texts_of, trace_of
from servetop.workload.datasets.rows import SkippedRows
from servetop.workload.datasets.traces import TraceFacts, measure
from servetop.workload.prompts.conversation_scripts import most_turns, parse_turns
from servetop.workload.prompts.dataset_options import check_dataset_options, check_output_options
from servetop.workload.prompts.hit_rate_prompts import check_hit_rate
from servetop.workload.prompts.length_options import check_length_options
from servetop.workload.prompts.lengths import lengths_for, parse_lengths
from servetop.workload.prompts.local_tokenizer import load_tokenizer
from servetop.workload.prompts.model_mix import check_mix

_ROWS_READ = 1000
"""Rows of a text dataset that are checked before a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """Default load of a trace: its own rate and number of requests."""

    rate: float
    """Mean requests per second."""
    requests: int
    """Requests of the whole trace."""


def resolve_workload(workload: WorkloadConfig) -> tuple[WorkloadConfig, Replay | None]:
    """Return the workload with the values that its dataset determines; UsageError for a dataset that cannot be used.

    Reads a trace to its end, so that a bad row is reported before the run starts.
    """
    _check_numbers(workload)
    check_dataset_name(workload.dataset)
    check_dataset_options(workload)
    check_length_options(workload)
    check_hit_rate(workload)
    _check_exact(workload)
    _check_conversations(workload)
    check_mix(workload)
    if workload.tokenizer:
        load_tokenizer(workload.tokenizer)
    next(lengths_for(workload, (0,)).pairs())
    _read_texts(workload)
    facts = _trace_facts(workload)
    timed = facts is not None and not math.isnan(facts.rate)
    arrivals = parse_arrivals(workload.arrivals or ("trace" if timed else "")).name
    if arrivals != "trace":
        if workload.time_scale != 1.0:
            raise UsageError("--time-scale stretches the times of a trace: give --dataset-name one that has times")
        if workload.jitter is not None:
            raise UsageError("--jitter spreads the times of a trace: leave it out, or give --arrivals trace")
        return workload, None
    if facts is None or not timed:
        raise UsageError("--arrivals trace replays the times of a trace: give --dataset-name one that has times")
    resolved = replace(workload, arrivals=workload.arrivals or arrivals, trace_rate=facts.rate)
    return resolved, Replay(rate=facts.rate / workload.time_scale, requests=facts.rows)


def _check_numbers(workload: WorkloadConfig) -> None:
    bounds = {
        "--time-scale": (workload.time_scale > 0, workload.time_scale, "a factor above 0"),
        "--jitter": (workload.jitter is None or workload.jitter >= 0, workload.jitter, "seconds from 0"),
        "--random-prefix-len": (workload.prefix_len >= 0, workload.prefix_len, "tokens from 0"),
        "--num-prefixes": (workload.num_prefixes >= 1, workload.num_prefixes, "1 or more"),
        "--n": (workload.n >= 1, workload.n, "1 or more completions"),
        "--cancel-fraction": (0 <= workload.cancel_fraction <= 1, workload.cancel_fraction, "a fraction from 0 to 1"),
    }
    wrong = next(((option, value, valid) for option, (fine, value, valid) in bounds.items() if not fine), None)
    if wrong is not None:
        raise UsageError(f"{wrong[0]} {wrong[1]:g}: give {wrong[2]}")
    if workload.n > 1 and workload.endpoint == "responses":
        raise UsageError("--n: /v1/responses returns one completion: leave it out, or give --endpoint chat")


def _check_exact(workload: WorkloadConfig) -> None:
    if not workload.exact_lengths:
        return
    if workload.dataset not in CORPORA:
        raise UsageError(f"--exact-lengths cuts {' and '.join(CORPORA)}: other prompts are exact without it")
    if workload.in_messages:
        raise UsageError("--exact-lengths: chat templates add tokens: give --endpoint completions")


def _check_conversations(workload: WorkloadConfig) -> None:
    if not workload.conversational:
        return
    parse_turns(workload.num_turns)
    if workload.dataset not in (*RANDOM, *CONVERSATIONS):
        raise UsageError(
            f"--num-turns is for conversations, not for {workload.dataset}: "
            f"give --dataset-name {', '.join((*CONVERSATIONS, *RANDOM))}"
        )
    if workload.n > 1:
        raise UsageError("--n: a conversation continues with one completion: leave it out")


def _read_texts(workload: WorkloadConfig) -> None:
    texts = texts_of(workload)
    if texts is None:
        return
    rows = texts.rows(SkippedRows() if workload.skip_bad_rows else None)
    read, without_output = 0, False
    for row in itertools.islice(rows, _ROWS_READ):
        read += 1
        without_output |= None in ([turn.output_tokens for turn in row.turns] or [row.output_tokens])
    if not read:
        next(texts.endless())  # raises the error with the reasons
    if read < _ROWS_READ and not (without_output or workload.lengths):
        check_output_options(workload)


def _trace_facts(workload: WorkloadConfig) -> TraceFacts | None:
    trace = trace_of(workload, seed=0)
    return (
        None
        if trace is None
        else measure(replace(trace, jitter=0.0), SkippedRows() if workload.skip_bad_rows else None)
    )


def check_fits(workload: WorkloadConfig, max_model_len: int | None) -> None:
    """Raise UsageError for known lengths beyond the context of the model; reads a trace to its end."""
    if max_model_len is None or workload.clip_lengths:
        return
    facts = _trace_facts(workload)
    distribution = parse_lengths(workload).name
    if facts is not None and not workload.lengths:
        prompt, output = facts.longest.input_tokens or 0, facts.longest.output_tokens or 0
        where = f"line {facts.longest.line} of the trace"
    elif distribution == "fixed" and workload.dataset not in CONVERSATIONS:
        prompt, output = next(lengths_for(workload, (0,)).pairs())
        where = "each request"
        if workload.conversational:
            where, prompt, output = "each conversation", *(each * most_turns(workload) for each in (prompt, output))
    else:
        return
    prompt += workload.prefix_len
    if prompt + output > max_model_len:
        raise UsageError(
            f"{where} needs {prompt:,} + {output:,} tokens, but the model's context has {max_model_len:,}: "
            "add --clip-lengths, or give the engine a longer context"
        )


def check_load(workload: WorkloadConfig, stages: Sequence[StageConfig]) -> None:
    """Raise UsageError for unknown arrivals, and for arrivals and think times that the stages rule out."""
    arrivals = parse_arrivals(workload.arrivals).name
    rates = [stage.request_rate for stage in stages if not math.isinf(stage.request_rate)]
    if not workload.burstiness > 0:
        raise UsageError(f"--burstiness {workload.burstiness:g}: give a number above 0 (1 is Poisson)")
    if workload.burstiness != 1.0 and arrivals != "gamma":
        raise UsageError(f"--burstiness applies to gamma arrivals: leave it out with --arrivals {arrivals}")
    if arrivals == "spaced" and rates and max(rates) > FASTEST_SPACED:
        raise UsageError(f"--arrivals spaced: {max(rates):g} requests/s is less than 1 ms apart: give 1000 or less")
    if arrivals not in RAMPABLE_ARRIVALS and any(stage.ramp_from is not None for stage in stages):
        raise UsageError(f"--arrivals {arrivals} cannot follow a ramp: give {', '.join(RAMPABLE_ARRIVALS)}")
    _check_pace(workload, rates)
    endless = any(stage.num_prompts is None and not math.isinf(stage.request_rate) for stage in stages)
    if endless and (arrivals == "all-at-once" or math.isinf(workload.trace_rate or 1.0)):
        raise UsageError("all requests are due at once and without end: give --num-prompts")
    if workload.think_time:
        parse_think_time(workload.think_time, seed=())
        if rates and not workload.conversational:
            raise UsageError(
                "--think-time is for closed loops and conversations: give --max-concurrency without a request rate"
            )


def check_trace_is_paced(workload: WorkloadConfig, stages: Sequence[StageConfig]) -> None:
    """Raise UsageError for a trace that would be sent all at once, although no option asks for that."""
    unpaced = any(math.isinf(stage.request_rate) and stage.max_concurrency is None for stage in stages)
    if workload.dataset in TRACES and unpaced:
        has = "lengths but no times" if workload.trace_rate is None else "the same time in each row"
        raise UsageError(
            f"{workload.dataset_path} has {has}: give --request-rate (inf sends all requests at once) "
            "or --max-concurrency"
        )


def _check_pace(workload: WorkloadConfig, rates: Sequence[float]) -> None:
    """UsageError for a time scale beside rates that replace the trace's own, and for rates without times to stretch."""
    if rates and math.isinf(workload.trace_rate or 1.0):
        raise UsageError("--request-rate stretches the times of the trace, but all are equal: add --arrivals poisson")
    if workload.time_scale == 1.0 or workload.trace_rate is None:
        return
    own = workload.trace_rate / workload.time_scale
    if rates and not any(math.isclose(rate, own) for rate in rates):
        raise UsageError("--time-scale and the request rate both stretch the times of the trace: leave out one of them")
