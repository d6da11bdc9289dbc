"""Refuses options that have no effect on the chosen dataset: they would be ignored without a word."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from servetop.core.config import CONVERSATIONS, RANDOM, WorkloadConfig
from servetop.core.errors import UsageError
from servetop.workload.datasets.catalogue import FILES_OF_ROWS, SHIPPED_CONVERSATIONS, SHIPPED_TRACES, TRACES, has_texts
from servetop.workload.datasets.conversation_rows import COLUMNS
from servetop.workload.datasets.records import holds_json, records
from servetop.workload.datasets.tables import header_of
from servetop.workload.datasets.text_file import is_parquet
from servetop.workload.datasets.trace_formats import JSON_LINES, format_of, shape_format
from servetop.workload.prompts.length_options import given_parameters

_DEFAULT = WorkloadConfig()
_MEANINGS = {
    "sharegpt": " (first questions)",
    "conversations": " (all questions)",
    "mooncake": " (times in milliseconds)",
    "timed_trace": " (times in seconds)",
}
"""Features that distinguish datasets with similar files."""


def check_dataset_options(workload: WorkloadConfig) -> None:
    """Raise UsageError for the first option that the dataset of the workload does not use."""
    _check_path(workload)
    wrong = next(_without_effect(workload), None)
    if wrong is not None:
        raise UsageError(wrong)


def _check_path(workload: WorkloadConfig) -> None:
    name, path = workload.dataset, Path(workload.dataset_path).expanduser()
    if not workload.dataset_path or name in TRACES or has_texts(name):
        return
    if name in SHIPPED_TRACES:
        raise UsageError(f"{name} ships with servetop: for a file use --dataset-name azure")
    if name != _DEFAULT.dataset:
        raise UsageError(f"{name} reads no file: leave out --dataset-path, or give another --dataset-name")
    raise UsageError(f"--dataset-path {path} needs --dataset-name: the file looks like {_described(path)}")


def likely_names(path: Path) -> tuple[str, ...]:
    """The datasets that a file or folder may be, by its content, the likeliest first; UsageError if it is none."""
    if path.is_dir():
        return ("hf",)
    if not path.is_file():
        raise UsageError(f"{path} is not a file: check --dataset-path")
    if is_parquet(path):
        return ("parquet",)
    if not holds_json(path):
        found = format_of(header_of(path))
        return ("csv" if found is None else found.name,)
    row = next((row for _, row in records(path)), {})
    keys = row if isinstance(row, dict) else {}
    if shape_format(keys) is not None:
        return ("trace",)
    if JSON_LINES[0].input_tokens in keys:
        return tuple(each.name for each in JSON_LINES)
    if any(name in keys for name in COLUMNS[2:]):
        return "sharegpt", "conversations"
    return ("conversations",) if any(name in keys for name in COLUMNS) else ("custom",)


def _described(path: Path) -> str:
    return " or ".join(f"{name}{_MEANINGS.get(name, '')}" for name in likely_names(path))


def _without_effect(workload: WorkloadConfig) -> Iterator[str]:
    """Yield what to do about each option that has no effect on the dataset."""
    name, texts = workload.dataset, has_texts(workload.dataset)
    in_file = texts or name in TRACES
    if workload.dataset_column and name not in (*FILES_OF_ROWS, *CONVERSATIONS):
        yield f"--dataset-column: {name} has no column to choose: leave it out"
    if workload.skip_bad_rows and not (in_file and (workload.dataset_path or name != SHIPPED_CONVERSATIONS)):
        yield f"--skip-bad-rows: {name} reads no file: leave it out"
    if workload.prefix_len and texts:
        yield f"--random-prefix-len: the texts of {name} are sent as they are in the file: leave it out"
    shares = workload.prefix_len or workload.cache_hit_rate is not None or name == RANDOM[1]
    if workload.num_prefixes > 1 and not shares:
        yield "--num-prefixes: the prompts share no prefix: give --random-prefix-len or --cache-hit-rate too"
    traced = name in (*TRACES, *SHIPPED_TRACES)
    if workload.input_len != _DEFAULT.input_len and (texts or (traced and not workload.lengths)):
        yield f"--input-len: the prompts of {name} have lengths of their own: leave it out"
    inputs = sorted(each for each in given_parameters(workload.lengths) if each.startswith("input"))
    if inputs and texts and not workload.lengths.startswith("sharegpt"):
        yield (
            f"--lengths: {inputs[0]} in {workload.lengths!r}: the prompts of {name} have lengths of their own: "
            "leave it out"
        )
    if workload.lengths or not (traced or name == "sharegpt"):
        return
    yield from _outputs_without_effect(workload, name)


def check_output_options(workload: WorkloadConfig) -> None:
    """Raise UsageError for an option that sets output lengths, for a file in which every row has one."""
    wrong = next(_outputs_without_effect(workload, workload.dataset_path or workload.dataset), None)
    if wrong is not None:
        raise UsageError(wrong)


def _outputs_without_effect(workload: WorkloadConfig, name: str) -> Iterator[str]:
    if workload.output_len != _DEFAULT.output_len:
        yield (
            f"--output-len: {name} has output lengths of its own: leave it out, or replace them with "
            f"--lengths fixed:output={workload.output_len}"
        )
    if workload.range_ratio:
        yield f"--random-range-ratio: {name} has lengths of its own: leave it out"
