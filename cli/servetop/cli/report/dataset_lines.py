"""The line of a summary on the dataset of the run."""

from __future__ import annotations

from collections.abc import Iterator

from servetop.analysis.summary.summary_types import DatasetSummary
from servetop.core.text.sanitize import sanitize_line

_TOKENS = {
    "ordinary": "ordinary tokens of the model",
    "unchecked": "token ids that may include special tokens (the tokenizer is unknown)",
}


def dataset_lines(found: DatasetSummary | None) -> Iterator[str]:
    """One line: name, file, rows, and what random prompts consist of; none without a dataset to name."""
    if found is None:
        return
    parts = [f"{found.name}, {sanitize_line(found.file)}" if found.file else found.name]
    for count, what in (
        (found.rows_used, "rows used"),
        (found.rows_skipped or None, "bad rows skipped"),
        (found.rows_left_out or None, "rows left out"),
    ):
        parts += [f"{count:,} {what if count != 1 else what.replace('rows', 'row')}"] if count is not None else []
    parts += [_TOKENS[found.random_tokens]] if found.random_tokens in _TOKENS else []
    if len(parts) > 1:
        yield f"dataset    {' · '.join(parts)}"
