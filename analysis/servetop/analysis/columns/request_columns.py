"""The requests of a run as columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from servetop.analysis.percentiles import Distribution
from servetop.core.arrays import BoolArray, FloatArray, IntArray
from servetop.core.events import RequestStatus

StringArray = npt.NDArray[np.str_]
STATUSES = tuple(RequestStatus)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RequestColumns:
    """The selected requests. Arrays have shape (requests,); NaN means that the request did not get that far."""

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
    status: IntArray
    """Index in STATUSES."""
    token_source: StringArray
    """Source of the token counts; empty in older files."""
    first_tokens: FloatArray
    """Tokens of the first chunk; 1 for a request without chunks."""
    sized: BoolArray
    """Whether the tokens of each chunk are known, because they add up to the output tokens."""
    itl: Distribution
    """Gaps between chunks / tokens of the later chunk, weighted by these tokens, of successful `sized` requests."""
    tokens_by_second: FloatArray
    """Output tokens that arrived in each whole second of the run, of all selected requests."""

    def with_status(self, status: RequestStatus) -> BoolArray:
        """Return a mask of the requests with this status."""
        return np.asarray(self.status == STATUSES.index(status))

    @property
    def ended_at(self) -> FloatArray:
        """The time at which each request ended, or was last known."""
        first_or_sent = np.where(np.isnan(self.first_token_at), self.sent, self.first_token_at)
        return np.where(np.isnan(self.done_at), first_or_sent, self.done_at)
