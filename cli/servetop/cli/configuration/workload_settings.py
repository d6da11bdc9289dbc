"""What each request asks for, from the options."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from servetop.core.config import WorkloadConfig
from servetop.core.errors import UsageError
from servetop.workload.plain_workload import is_plain
from servetop.workload.request_headers import parse_header_env, parse_headers

if TYPE_CHECKING:
    from servetop.workload.validation import Replay

Options = Mapping[str, Any]
"""Values by the parameter names of `commands`."""
_SAME_NAMES = (
    "input_len", "output_len", "range_ratio", "dataset_path", "dataset_column", "prefix_len", "num_prefixes",
    "exact_lengths", "tokenizer", "skip_bad_rows", "clip_lengths", "burstiness", "time_scale", "jitter", "ignore_eos",
    "endpoint", "temperature", "stream", "n", "cancel_fraction", "timeout", "store_texts",
)  # fmt: skip
"""Options that are fields of WorkloadConfig as they are."""


def workload_config(options: Options) -> WorkloadConfig:
    """As typed; what a dataset decides is not filled in yet."""
    return WorkloadConfig(
        dataset=options["dataset_name"],
        lengths=options["lengths"] or "",
        arrivals=options["arrivals"] or "",
        think_time=options["think_time"] or "",
        num_turns=options["num_turns"] or "",
        extra_body=parse_extra_body(options["extra_body"]),
        headers=parse_headers(options["header"] or ()),
        header_env=parse_header_env(options["header_env"] or ()),
        model_mix=model_mix(options["model_mix"]),
        **{name: options[name] for name in _SAME_NAMES},
    )


def model_mix(text: str | None) -> dict[str, float]:
    """Weights by model; empty without a mix."""
    if not text:
        return {}
    from servetop.workload.prompts.model_mix import parse_model_mix  # numpy: not for --help

    return parse_model_mix(text)


def resolved(workload: WorkloadConfig) -> tuple[WorkloadConfig, Replay | None]:
    """The workload with what its dataset decides, and how a trace is to be played; UsageError for what cannot work."""
    if is_plain(workload):
        return workload, None
    from servetop.workload.validation import resolve_workload  # numpy: not for --help

    return resolve_workload(workload)


def parse_extra_body(text: str | None) -> dict[str, Any]:
    """The JSON object of --extra-body."""
    try:
        body = json.loads(text) if text else {}
    except json.JSONDecodeError as error:
        raise UsageError(f"--extra-body is no JSON ({error}): give an object such as '{{\"top_p\": 0.9}}'") from None
    if not isinstance(body, dict):
        raise UsageError("--extra-body: give a JSON object such as '{\"top_p\": 0.9}'")
    return body
