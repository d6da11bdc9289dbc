"""Datasets of texts: JSON Lines and tables with a column of prompts, and ShareGPT's conversations."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from servetop.workload.datasets.files import lines_of, opened, table_rows, value_of
from servetop.workload.datasets.rows import BadRow, DatasetRow
from servetop.workload.datasets.trace_formats import tokens
from servetop.workload.prompts.token_estimate import estimated_tokens

OUTPUT_COLUMNS = ("output_tokens", "output_len")
"""Columns of a table that may hold the output length."""
_READ_CHARS = 1 << 20
_MAX_ITEM_CHARS = 64 << 20
_GAP = re.compile(r"[\s,\[\]]*")
_DECODER = json.JSONDecoder()
_LEAST, _MOST_INPUT, _MOST_TOTAL = 4, 1024, 2048
"""Tokens: vLLM's filter of ShareGPT conversations."""


def text_row(line: int, values: Mapping[str, object], *, column: str) -> DatasetRow:
    """The prompt of a table row, with its output length where given; BadRow without a prompt."""
    text = value_of(values, column)
    if not isinstance(text, str) or not text.strip():
        raise BadRow(column, "a prompt", text)
    output = next(((name, values[name]) for name in OUTPUT_COLUMNS if values.get(name) not in (None, "")), None)
    return DatasetRow(
        line=line,
        text=text,
        input_tokens=estimated_tokens(text),
        output_tokens=None if output is None else tokens(*output),
    )


def json_line_values(path: Path) -> Iterator[tuple[int, Mapping[str, object]]]:
    """One JSON object per line; empty for a line that has none."""
    for line, text in lines_of(path):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = {}
        yield line, found if isinstance(found, dict) else {}


def csv_values(path: Path) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Rows of a comma-separated file by column name."""
    return ((line, dict(values)) for line, values in table_rows(path))


def conversation_values(path: Path) -> Iterator[tuple[int, object]]:
    """The items of a JSON array, decoded one by one; the file may be larger than memory.

    The last item is None for a file that is truncated or is not an array.
    """
    with opened(path) as file:
        buffer, at, line, exhausted = "", 0, 1, False
        while True:
            start = _between_items(buffer, at)
            line += buffer.count("\n", at, start)
            found = _decoded(buffer, start)
            if found is not None:
                yield line, found[0]
                at = found[1]
                line += buffer.count("\n", start, at)
            elif exhausted or len(buffer) - start > _MAX_ITEM_CHARS:
                break
            else:
                piece = file.read(max(_READ_CHARS, len(buffer) - start))
                buffer, at, exhausted = buffer[start:] + piece, 0, not piece
        if start < len(buffer):
            yield line, None


def _between_items(buffer: str, at: int) -> int:
    """Position of the next item."""
    gap = _GAP.match(buffer, at)
    return at if gap is None else gap.end()


def _decoded(buffer: str, start: int) -> tuple[object, int] | None:
    """The item at `start` and its end; None when the buffer holds only a part of it."""
    try:
        return _DECODER.raw_decode(buffer, start) if start < len(buffer) else None
    except (ValueError, RecursionError):
        return None


def conversation_row(line: int, item: object) -> DatasetRow:
    """The first question of a ShareGPT conversation with the length of its answer; BadRow without both."""
    turns = item.get("conversations", item.get("conversation")) if isinstance(item, dict) else None
    if not isinstance(turns, list) or len(turns) < 2:
        raise BadRow("conversations", "a list of two turns or more", turns if isinstance(item, dict) else item)
    question, answer = (turn.get("value") if isinstance(turn, dict) else None for turn in turns[:2])
    if not isinstance(question, str) or not question.strip() or not isinstance(answer, str):
        raise BadRow("value", "a question and its answer", question)
    return DatasetRow(
        line=line, text=question, input_tokens=estimated_tokens(question), output_tokens=estimated_tokens(answer)
    )


def fits_sharegpt_filter(row: DatasetRow) -> bool:
    """Whether vLLM's benchmark keeps the row: at least 4 tokens each, prompt up to 1,024, both up to 2,048."""
    prompt, answer = row.input_tokens or 0, row.output_tokens or 0
    return min(prompt, answer) >= _LEAST and prompt <= _MOST_INPUT and prompt + answer <= _MOST_TOTAL
