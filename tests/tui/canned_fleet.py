"""A canned watch of three servers: gpu0 is full from second 20 on, gpu1 is gone from second 40, gpu2 restarts at 50."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from servetop.core.config import EngineConfig, RunConfig
from servetop.core.config_values.watch_config import WatchConfig
from servetop.core.events import EngineSample, Note, ReplicaSample, RunEnd, Severity
from servetop.core.interfaces.replica_change import ReplicaChange
from servetop.core.interfaces.run_source import RunUpdate
from servetop.core.interfaces.series_scrape import SeriesScrape, pack_numbers
from servetop.core.tick import TICK_SECONDS, ClientTick, Tick
from tests.tui.canned import CannedRun
from tests.tui.test_fleet_state import CHANGES, FACTS, GONE_FROM, SAMPLES, SECONDS

URLS = tuple(f"http://gpu{number}" for number in range(3))
CONFIG = RunConfig(
    engine=EngineConfig(name="vllm", url=URLS[0], more_urls=URLS[1:]),
    watch=WatchConfig(several=True, names=("gpu0", "gpu1", "gpu2")),
)
NOTES = (
    Note(at=GONE_FROM, severity=Severity.WARNING, source="engine", text="gpu1: nothing answers: the watch waits"),
    Note(at=50.0, severity=Severity.INFO, source="engine", text="gpu2: was restarted"),
    Note(at=51.0, severity=Severity.INFO, source="user", text="deploy of the router"),
)


@dataclass(kw_only=True)
class CannedFleet(CannedRun):
    """The watch as a RunSource; a live one returns what is before `now`."""

    samples: Sequence[ReplicaSample] = ()
    changes: Sequence[ReplicaChange] = ()
    _added_until: float = -1.0

    def poll(self, *, most_ticks: int | None = None) -> RunUpdate:
        update = super().poll(most_ticks=most_ticks)
        if update.more:
            return update
        low, high, self._added_until = self._added_until, self.now, self.now
        return replace(
            update,
            replica_samples=[each for each in self.samples if low < each.scrape_end <= high],
            replica_changes=[each for each in self.changes if low < each.at <= high],
        )


def scrapes() -> list[SeriesScrape]:
    """The series of each server once a second: server N ends 10 requests/s times N + 1, all within 0.3 s."""
    found = []
    for second in range(1, SECONDS):
        for number in range(3):
            ended = second * 10.0 * (number + 1)
            values = {
                "vllm:request_success_total{finished_reason=length}": ended,
                "vllm:time_to_first_token_seconds_bucket{le=0.3}": ended,
                "vllm:time_to_first_token_seconds_bucket{le=+Inf}": ended,
            }
            names = "\n".join(values) if second == 1 else None
            found.append(
                SeriesScrape(
                    at=second + 0.1 * number, names=names, numbers=pack_numbers(values.values()), replica=number
                )
            )
    return found


def summed(second: float) -> EngineSample | None:
    """The sum of the servers that were read, as a watch records it beside each server's own."""
    fresh = [each for each in SAMPLES if 0.0 <= second - each.scrape_end < 1.0]
    if not fresh:
        return None
    return EngineSample(
        scrape_start=second - 0.1, scrape_end=second, running=sum(each.running or 0.0 for each in fresh),
        waiting=sum(each.waiting or 0.0 for each in fresh), kv_usage=max(each.kv_usage or 0.0 for each in fresh),
        preemptions_total=0.0, generation_tokens_total=second * 600,
    )  # fmt: skip


def fleet(*, live: bool = False, until: float = SECONDS) -> CannedFleet:
    """The watch up to some second; one that is not live has ended then."""
    indexes = range(round(SECONDS / TICK_SECONDS))
    ticks = [Tick(client=ClientTick(index=index), engine=summed((index + 1) * TICK_SECONDS)) for index in indexes]
    return CannedFleet(
        ticks=ticks, facts=replace(FACTS, replica_urls=URLS), config=CONFIG, notes=NOTES, series=scrapes(),
        samples=SAMPLES, changes=CHANGES, live=live, now=until,
        end=None if live else RunEnd(at=until, exit_code=0, reason=""),
    )  # fmt: skip
