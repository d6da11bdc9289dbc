"""Writes a recorded load as a trace: JSON lines with Mooncake's fields, the size of a block, and sessions."""

from __future__ import annotations

import json
from collections.abc import Iterator

from servetop.core.units import MS_PER_S
from servetop.workload.datasets.trace_formats import SHAPE
from servetop.workload.shape.recorded_load import RecordedLoad


def shape_lines(load: RecordedLoad, *, renumber: bool) -> Iterator[str]:
    """Yield a line for each request; `renumber`: identities become 0, 1, 2, … in the order of their first use.

    Otherwise they are the hashes themselves, equal in every trace that was written with the same salt.
    """
    blocks, sessions = _Numbers(renumber), _Numbers(renumber)
    for each in load.requests:
        row: dict[str, object] = {
            SHAPE.time: _milliseconds(each.at),
            SHAPE.input_tokens: each.input_tokens,
            SHAPE.output_tokens: each.output_tokens,
        }
        if each.session is not None:
            row[SHAPE.session] = sessions.of(each.session)
        row[SHAPE.block_size] = load.block_tokens
        row[SHAPE.blocks] = [blocks.of(block) for block in each.blocks]
        yield f"{json.dumps(row)}\n"


class _Numbers:
    """Numbers of identities."""

    def __init__(self, renumber: bool) -> None:
        self._numbers: dict[int, int] | None = {} if renumber else None

    def of(self, identity: int) -> int:
        """Return the number of an identity."""
        return identity if self._numbers is None else self._numbers.setdefault(identity, len(self._numbers))


def _milliseconds(seconds: float) -> float:
    rounded = round(seconds * MS_PER_S, 3)
    return int(rounded) if rounded == int(rounded) else rounded
