"""The rules that need no client: those by which the episodes of a watched server are found, and their inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from servetop.analysis.diagnosis.detectors import kv_full, preempting, throttled
from servetop.analysis.diagnosis.episode import EpisodeKind
from servetop.analysis.diagnosis.marks import Marks
from servetop.analysis.diagnosis.queue_detectors import batch_full, queueing_of_others
from servetop.analysis.diagnosis.signals import Signals
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.arrays import FloatArray

WATCHED_DETECTORS: Mapping[EpisodeKind, Callable[[Signals], Marks]] = {
    EpisodeKind.KV: kv_full,
    EpisodeKind.PREEMPTIONS: preempting,
    EpisodeKind.BATCH: batch_full,
    EpisodeKind.QUEUE: queueing_of_others,
    EpisodeKind.THROTTLED: throttled,
}
"""The rule of each kind that the metrics of an engine and of its GPU show."""


def of_engine(signals: Signals, history: TickHistory, start: int, stop: int) -> Signals:
    """Return the signals of ticks `start` to `stop` with the engine's counts in place of the client's.

    As many requests complete as begin to be served: an engine exports the time of the first token, but not always the
    number of those that ended.
    """

    def counted(name: str) -> FloatArray:
        return np.nan_to_num(history.column(name, start=start, stop=stop))

    served = counted("engine_first_tokens")
    return replace(
        signals,
        output_tokens=counted("engine_output_tokens"),
        prompt_tokens=counted("engine_prompt_tokens"),
        first_tokens=served,
        ok=served,
    )
