"""Alternative spellings of options: names in other tools, and the nearest name for one that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable

import click

OTHER_TOOLS = {
    "base_url": "url", "batch_size": "max_num_seqs", "benchmark_duration": "duration", "clients": "max_concurrency",
    "concurrency": "max_concurrency", "concurrent_requests": "max_concurrency", "config_file": "config",
    "dataset": "dataset_name", "host": "url", "input_file": "dataset_path", "isl": "random_input_len",
    "max_batch_size": "max_num_seqs", "max_duration": "duration", "max_requests": "num_prompts",
    "max_vus": "max_concurrency", "n_requests": "num_prompts", "num_clients": "max_concurrency",
    "num_concurrency": "max_concurrency", "num_concurrent_requests": "max_concurrency",
    "num_requests": "num_prompts", "num_users": "max_concurrency", "osl": "random_output_len", "output": "record",
    "percentiles": "metric_percentiles", "random_seed": "seed", "request_count": "num_prompts",
    "requests": "num_prompts", "requests_per_second": "request_rate", "slo": "goodput",
    "spawn_rate": "request_rate", "streams": "max_concurrency", "target": "url", "time": "duration",
    "tps": "request_rate", "user": "max_concurrency", "users": "max_concurrency", "vu": "max_concurrency",
    "vus": "max_concurrency", "warmup": "num_warmups",
}  # fmt: skip
"""The option for each name that other load generators use, with underscores."""


def plain(name: str) -> str:
    """Return an option's name as files spell it: `--Max-Concurrency` becomes `max_concurrency`."""
    return name.lstrip("-").lower().replace("-", "_")


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the closest match in `known` (spelled with underscores); None if there is none."""
    names = list(known)
    wanted = plain(name)
    if OTHER_TOOLS.get(wanted) in names:
        return OTHER_TOOLS[wanted]
    near = difflib.get_close_matches(wanted, names, n=1)
    return near[0] if near else None


def usage_message(
    error: click.ClickException, *, is_file_key: Callable[[str], bool], is_sweep_key: Callable[[str], bool]
) -> str:
    """Return the message of an error in a command line; for an unknown option it suggests the closest one.

    Most options of a run are keys of a sweep's file, and `predict` has few of them.
    """
    if not isinstance(error, click.NoSuchOption) or error.ctx is None:
        return error.format_message()
    wanted, context = error.option_name, error.ctx
    words = (word for each in context.command.params for word in each.opts)
    spelled = {plain(word): word for word in words if word.startswith("-")}  # not the names of arguments
    near = nearest(wanted, spelled)
    if context.command.name == "sweep" and is_sweep_key(wanted):
        return f"no such option: {wanted}: write {plain(wanted)} = … into the sweep file"
    if context.command.name in ("predict", "sweep") and is_file_key(wanted):
        return f"no such option: {wanted}: it is one of a run, not of {context.command.name}"
    return f"no such option: {wanted}" + (f": did you mean {spelled[near]}?" if near else "")
