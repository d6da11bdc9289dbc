"""Datasets of other packages: prompts for `--dataset-name` from the entry points `servetop.datasets`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servetop.core.config import WorkloadConfig
from servetop.core.errors import UsageError
from servetop.core.system.plug_ins import PlugIn, plug_ins
from servetop.workload.datasets.rows import BadRow, DatasetRow, MalformedRow, SkippedRows, good_rows, valid_text
from servetop.workload.datasets.text_dataset import TextDataset
from servetop.workload.datasets.trace_formats import tokens
from servetop.workload.token_estimate import estimated_tokens

GROUP = "servetop.datasets"


@dataclass(frozen=True, slots=True)
class DatasetPrompt:
    """One request of a plug-in's dataset."""

    text: str
    output_tokens: int | None = None
    """Tokens to request; None: those of `--output-len`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptDataset:
    """A dataset that a plug-in adds to `--dataset-name`."""

    prompts: Callable[[Path | None], Iterable[str | DatasetPrompt]]
    """Returns the prompts of one pass, the same ones in the same order at each call; a text is one without a length.

    It takes the path of `--dataset-path`, None for a dataset that reads no file. Sender processes call it too.
    """
    reads_path: bool = False
    """Whether it reads the file or folder of `--dataset-path`, which is needed then and refused otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlugInTexts(TextDataset):
    """The prompts of a plug-in."""

    prompts: Callable[[], Iterator[str | DatasetPrompt]]

    def rows(self, skipped: SkippedRows | None = None) -> Iterator[DatasetRow]:
        """Return the rows of one pass; bad ones are counted in `skipped`, or raise UsageError without it."""
        return good_rows(enumerate(self.prompts(), start=1), self.parse, name=str(self.path), skipped=skipped)


def plug_in_texts(workload: WorkloadConfig) -> PlugInTexts | None:
    """Return the prompts of a plug-in's dataset; None if no plug-in has that name.

    UsageError for a path that is missing or that it does not read; PlugInError if it cannot be loaded.
    """
    name = workload.dataset
    plug_in = plug_ins(GROUP, "dataset").get(name)
    if plug_in is None:
        return None
    dataset = plug_in.load(PromptDataset)
    path = _path(workload, dataset)
    return PlugInTexts(
        path=path or Path(f"dataset {name}"), parse=_row, prompts=lambda: _prompts(plug_in, dataset, path)
    )


def _path(workload: WorkloadConfig, dataset: PromptDataset) -> Path | None:
    name, given = workload.dataset, workload.dataset_path
    if not dataset.reads_path:
        if given:
            raise UsageError(f"{name} reads no file: leave out --dataset-path, or give another --dataset-name")
        return None
    if not given:
        raise UsageError(f"--dataset-name {name} reads a file: give --dataset-path")
    path = Path(given).expanduser()
    if not path.exists():
        raise UsageError(f"{path} is not a file: check --dataset-path")
    return path


def _prompts(plug_in: PlugIn, dataset: PromptDataset, path: Path | None) -> Iterator[str | DatasetPrompt]:
    return plug_in.each("prompts", lambda: dataset.prompts(path))


def _row(line: int, value: Any) -> DatasetRow:
    prompt = DatasetPrompt(text=value) if isinstance(value, str) else value
    if not isinstance(prompt, DatasetPrompt):
        raise MalformedRow(f"expected a text or a DatasetPrompt, found {type(value).__name__}")
    if not isinstance(prompt.text, str) or not prompt.text.strip():
        raise BadRow("text", "a prompt", prompt.text)
    return DatasetRow(
        line=line,
        text=valid_text("text", prompt.text),
        input_tokens=estimated_tokens(prompt.text),
        output_tokens=None if prompt.output_tokens is None else tokens("output_tokens", prompt.output_tokens),
    )
