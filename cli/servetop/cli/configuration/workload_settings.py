"""Builds the configuration of the requests from the options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from servetop.cli.options.run_options import RepeatableOptions
from servetop.core.config import AS_IS, PREFIX_CACHE_STATES, WARM, WorkloadConfig
from servetop.core.errors import UsageError
from servetop.workload.plain_workload import is_plain

if TYPE_CHECKING:
    from servetop.workload.validation import Replay


def workload_config(options: RepeatableOptions) -> WorkloadConfig:
    """Return the workload that the options describe, without what its dataset decides."""
    load, data, requests = options.load, options.data, options.requests
    return WorkloadConfig(
        input_len=requests.input_len,
        output_len=requests.output_len,
        lengths=data.lengths,
        range_ratio=data.range_ratio,
        dataset=data.dataset_name,
        dataset_path=data.dataset_path,
        num_turns=data.num_turns,
        dataset_column=data.dataset_column,
        prefix_len=data.prefix_len,
        num_prefixes=data.num_prefixes,
        cache_hit_rate=data.cache_hit_rate,
        exact_lengths=data.exact_lengths,
        tokenizer=data.tokenizer,
        skip_bad_rows=data.skip_bad_rows,
        clip_lengths=data.clip_lengths,
        arrivals=load.arrivals,
        burstiness=load.burstiness,
        time_scale=load.time_scale,
        jitter=load.jitter,
        think_time=load.think_time,
        ignore_eos=requests.ignore_eos,
        endpoint=requests.endpoint,
        temperature=requests.temperature,
        extra_body=requests.extra_body,
        headers=requests.header,
        header_env=requests.header_env,
        stream=requests.stream,
        n=requests.n,
        cancel_fraction=requests.cancel_fraction,
        model_mix=requests.model_mix,
        timeout=requests.timeout,
        store_texts=options.results.store_texts,
    )


def resolved(workload: WorkloadConfig) -> tuple[WorkloadConfig, Replay | None]:
    """The workload with what its dataset decides, and how to replay a trace; UsageError for an invalid workload."""
    if is_plain(workload):
        return workload, None
    from servetop.workload.validation import resolve_workload  # numpy: not for every start

    return resolve_workload(workload)


def prefix_cache_of(given: str | None, workload: WorkloadConfig) -> str:
    """The state of the prefix cache that a run promises; UsageError for an unknown one, or one without a meaning."""
    state = given or (AS_IS if workload.cache_hit_rate is None else WARM)
    if state not in PREFIX_CACHE_STATES:
        raise UsageError(f"--prefix-cache {state}: use {', '.join(PREFIX_CACHE_STATES)}")
    if state == WARM:
        from servetop.workload.warming_prompts import check_warmable  # numpy: not for every start

        check_warmable(workload)
    return state
