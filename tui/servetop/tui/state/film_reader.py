"""Reads the requests of the batch film and gives each its slot, which it keeps while it is in the film."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from servetop.analysis.live_stats import LiveStats
from servetop.core.arrays import FloatArray
from servetop.core.events import RequestRecord
from servetop.tui.film.batch_stay import BatchStay, batch_stay
from servetop.tui.film.slots import assign_slots
from servetop.tui.state.film_window import MOST_FILM_REQUESTS, bin_seconds, in_flight_during, read_until
from servetop.tui.state.frame import Frame
from servetop.tui.state.request_phases import ended_at


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BatchFilm:
    """What is known of the batch in a window of time."""

    window: tuple[float, float]
    """Left and right edge, seconds."""
    until: float
    """The end of what is shown: the playhead, or the right edge if that is earlier."""
    read_until: float
    """Requests sent later are not read, because they wait."""
    stays: Sequence[BatchStay]
    """In order of admission."""
    slots: Mapping[int, int]
    """The slot of each stay by the request's id, from 0."""
    records: Mapping[int, RequestRecord]
    """Requests by id, also those without a stay."""
    engine: LiveStats
    """The engine's gauges; the series begin one window earlier, for the pauses that began there."""
    live: bool
    """Whether the run is live: requests in flight are recorded when they end."""
    total: int
    """Requests that were in flight in the window and did not wait at its end; more than `records` if not all are read.

    Those without a record are in flight, or were due before the last `MOST_FILM_REQUESTS`.
    """

    @property
    def complete(self) -> bool:
        """Whether fewer requests were read than the most of one frame."""
        return len(self.records) < MOST_FILM_REQUESTS

    @property
    def reported(self) -> bool:
        """Whether the engine reported the admission of all shown requests."""
        return all(stay.reported for stay in self.stays)

    def unrecorded(self) -> FloatArray:
        """Return requests in flight at the end of each bin of the gauges that should be in `records`, but are not.

        Shape (bins,).
        """
        series = self.engine.series
        sent = np.sort([each.sent for each in self.records.values() if each.sent is not None])
        ended = np.sort([ended_at(each) for each in self.records.values() if each.sent is not None])
        times = series.times + 1e-9
        known = np.searchsorted(sent, times, side="right") - np.searchsorted(ended, times, side="right")
        unread = np.cumsum(np.where(series.times > self.read_until, series.sent * bin_seconds(series), 0.0))
        return np.asarray(np.maximum(np.nan_to_num(series.in_flight) - known - unread, 0.0))


class FilmReader:
    """Caches stays, because a request does not change once it is recorded, and slots, so that rows keep still."""

    def __init__(self) -> None:
        self._stays: Mapping[int, BatchStay | None] = {}
        self._slots: Mapping[int, int] = {}

    def read(self, frame: Frame, window: tuple[float, float]) -> BatchFilm:
        """Return the film of a window; requests that are not in it any more are dropped from the cache."""
        left, right = window
        until = min(right, frame.view.playhead.at)
        engine = frame.engine_between(max(2 * left - right, 0.0), until)
        last = max(read_until(engine.series, left, until), left)
        records = {record.id: record for record in frame.requests(left, last, most=MOST_FILM_REQUESTS)}
        prefill = engine.ttft.prefill
        self._stays = {
            key: self._stays[key] if key in self._stays else batch_stay(record, prefill=prefill)
            for key, record in records.items()
        }
        stays = sorted(
            (stay for stay in self._stays.values() if stay is not None and stay.admitted <= until),
            key=lambda stay: (stay.admitted, stay.id),
        )
        intervals = [(stay.id, stay.admitted, stay.until) for stay in stays]
        self._slots = assign_slots(intervals, known=self._slots)
        total = max(in_flight_during(engine.series, left, last), len(records))
        return BatchFilm(
            window=window,
            until=until,
            read_until=last,
            stays=stays,
            slots=self._slots,
            records=records,
            engine=engine,
            live=frame.live,
            total=total,
        )
