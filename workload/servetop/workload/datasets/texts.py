"""Datasets of texts: rows with a column of prompts, and ShareGPT's conversations."""

from __future__ import annotations

from servetop.workload.datasets.messages import text_of
from servetop.workload.datasets.rows import BadRow, DatasetRow, LeftOut, MalformedRow, MissingColumn, valid_text
from servetop.workload.datasets.trace_formats import tokens
from servetop.workload.token_estimate import estimated_tokens

OUTPUT_COLUMNS = ("output_tokens", "output_len")
"""Columns of a table that may hold the output length."""
_LEAST, _MOST_INPUT, _MOST_TOTAL = 4, 1024, 2048
"""Tokens: vLLM's filter of ShareGPT conversations."""
_FILTER = (
    f"outside of vLLM's filter (at least {_LEAST} tokens each, prompt up to {_MOST_INPUT:,}, both {_MOST_TOTAL:,})"
)


def text_row(line: int, values: object, *, column: str) -> DatasetRow:
    """Return the prompt of a row, with its output length where given; BadRow without a prompt.

    A string is a prompt itself; the column may be written in other cases.
    """
    if isinstance(values, str):
        values = {column: values}
    if not isinstance(values, dict):
        raise MalformedRow(f"expected an object with the column {column!r}, found {str(values)[:40]!r}")
    name = next((each for each in (column, *values) if each in values and each.lower() == column.lower()), None)
    if name is None:
        raise MissingColumn(column, values, chosen=True)
    text = values[name]
    if not isinstance(text, str) or not text.strip():
        raise BadRow(column, "a prompt", text)
    output = next(((name, values[name]) for name in OUTPUT_COLUMNS if values.get(name) not in (None, "")), None)
    return DatasetRow(
        line=line,
        text=valid_text(column, text),
        input_tokens=estimated_tokens(text),
        output_tokens=None if output is None else tokens(*output),
    )


def conversation_row(line: int, item: object) -> DatasetRow:
    """Return the first question of a ShareGPT conversation with the length of its answer.

    BadRow for anything else; LeftOut for what vLLM's benchmark does not send either: conversations of fewer than two
    turns, questions or answers of fewer than 4 tokens, prompts above 1,024, both together above 2,048.
    """
    values = item if isinstance(item, dict) else {}
    name = next((each for each in ("conversations", "conversation") if each in values), "")
    if not name:
        raise MissingColumn("conversations", values) if values else MalformedRow("expected a JSON object")
    turns = values[name]
    if not isinstance(turns, list):
        raise BadRow(name, "a list of turns", turns)
    if len(turns) < 2:
        raise LeftOut("a conversation of fewer than two turns")
    question, answer = (text_of(name, turn) for turn in turns[:2])
    prompt, output = estimated_tokens(question), estimated_tokens(answer)
    if min(prompt, output) < _LEAST or prompt > _MOST_INPUT or prompt + output > _MOST_TOTAL:
        raise LeftOut(_FILTER)
    return DatasetRow(line=line, text=question, input_tokens=prompt, output_tokens=output)
