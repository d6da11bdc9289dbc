"""Builds the configuration of the requests from the options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from servetop.cli.options.run_options import RepeatableOptions
from servetop.core.config import AS_IS, PREFIX_CACHE_STATES, WARM, WorkloadConfig
from servetop.core.errors import UsageError
from servetop.core.same_fields import from_same_fields
from servetop.workload.plain_workload import is_plain

if TYPE_CHECKING:
    from servetop.workload.validation import Replay


def workload_config(options: RepeatableOptions) -> WorkloadConfig:
    """Return the workload that the options describe, without what its dataset decides."""
    data, requests = options.data, options.requests
    return from_same_fields(
        WorkloadConfig,
        options.load,
        data,
        requests,
        options.results,
        dataset=data.dataset_name,
        headers=requests.header,
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
