"""The requests of a run as columns."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from servetop.analysis.failure_reasons import FAILED
from servetop.analysis.statistics.percentiles import Distribution
from servetop.core.arrays import BoolArray, FloatArray, IntArray
from servetop.core.events import RequestStatus, TokenSource

CodeArray = npt.NDArray[np.int8]
STATUSES = tuple(RequestStatus)
FAILED_CODES = tuple(STATUSES.index(each) for each in FAILED)
TOKEN_SOURCES = tuple(TokenSource)
UNKNOWN_SOURCE = -1
_EXACT = 1 << 24
"""Integers up to this are exact in single precision."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RequestColumns:
    """The selected requests. Arrays have shape (requests,); NaN means that the request did not get that far.

    To save memory, tokens and `first_output_at` are in single precision where that is exact (`narrowed`): add them up
    in double precision.
    """

    due: FloatArray
    sent: FloatArray
    first_token_at: FloatArray
    done_at: FloatArray
    prompt_tokens: FloatArray
    output_tokens: FloatArray
    first_output_at: FloatArray
    reasoning_tokens: FloatArray
    """NaN without reasoning."""
    required_tokens: FloatArray
    """Output tokens that the request demanded; NaN if the model was free to stop."""
    status: CodeArray
    """Index in STATUSES."""
    token_source: CodeArray
    """Source of the token counts: index in TOKEN_SOURCES; UNKNOWN_SOURCE in older files."""
    first_tokens: FloatArray
    """Tokens of the first chunk; 1 for a request without chunks."""
    sized: BoolArray
    """Whether the tokens of each chunk are known, because they add up to the output tokens."""
    itl: Distribution
    """Gaps between chunks / tokens of the later chunk, weighted by these tokens, of successful `sized` requests."""
    tokens_by_second: FloatArray
    """Output tokens that arrived in each whole second of the run, of all selected requests."""
    others: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    """Optional columns by name."""

    def part(self, selected: slice | IntArray | BoolArray) -> Self:
        """Return some requests, of a slice without a copy; gaps and tokens by second remain those of all."""
        arrays: dict[str, Any] = {name: getattr(self, name)[selected] for name in PER_REQUEST}
        others = {name: values[selected] for name, values in self.others.items()}
        return dataclasses.replace(self, **arrays, others=others)

    def with_status(self, status: RequestStatus) -> BoolArray:
        """Return a mask of the requests with this status."""
        return np.asarray(self.status == STATUSES.index(status))

    @property
    def failed(self) -> BoolArray:
        """A mask of the requests that failed."""
        return np.isin(self.status, FAILED_CODES)

    @property
    def ended_at(self) -> FloatArray:
        """The time at which each request ended, or was last known."""
        ended = self.done_at.copy()
        for earlier in (self.first_token_at, self.sent):
            np.copyto(ended, earlier, where=np.isnan(ended))
        return ended


_NOT_PER_REQUEST = ("itl", "tokens_by_second", "others")
PER_REQUEST = tuple(each for each in RequestColumns.__dataclass_fields__ if each not in _NOT_PER_REQUEST)
"""The columns with one value per request."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StageRequests:
    """All requests by stage, and those of a stage by due time and id; arrays of shape (requests,), NaN is unknown."""

    columns: RequestColumns
    """Without token gaps and without the tokens of each second."""
    stages: FloatArray
    ids: IntArray
    replicas: FloatArray

    def of_stage(self, index: int) -> slice:
        """Return the places of the requests of one stage."""
        return slice(*(int(np.searchsorted(self.stages, each)) for each in (index, index + 1)))


def narrowed(values: FloatArray) -> FloatArray:
    """Return values, such as tokens, in single precision if these and their differences are exact in it."""
    exact = not (np.abs(values) > _EXACT).any()
    narrow: Any = values.astype(np.float32) if exact else values
    return narrow if np.array_equal(narrow, values, equal_nan=True) else values
