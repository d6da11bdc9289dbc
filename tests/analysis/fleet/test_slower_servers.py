"""A server that is much slower than the others is named, and none that only has more to do."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from servetop.analysis.exported.scrape_history import ScrapeHistory
from servetop.analysis.fleet import slower_servers
from servetop.analysis.fleet.pace_table import LEAST_TOKENS
from servetop.analysis.fleet.slower_servers import (
    KEPT,
    PacedServer,
    SlowerServers,
    slower_factors,
    slower_text,
)
from servetop.analysis.fleet.token_times import TokenPace, TokenTimes
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.arrays import FloatArray
from servetop.core.events import EngineSample
from servetop.core.interfaces.series_scrape import SeriesScrape, pack_numbers
from servetop.core.tick import TICK_SECONDS, ClientTick, Tick
from servetop.simulator.scheduling.build import build_scheduler, sim_spec

SECONDS = 40
STEP = 0.01
"""Seconds of an iteration."""


@dataclass(frozen=True, kw_only=True)
class Load:
    """The load of a server in one second."""

    decoding: float = 4.0
    per_token: float = STEP
    prefilling: float = 0.0
    prompt_tokens: float = 1000.0


def server(number: int, loads: Sequence[Load], *, group: str = "tiny 0.11.0") -> PacedServer:
    """A server with one load for each second, read once a second."""
    sums = {"sum": 0.0, "tokens": 0.0, "prompts": 0.0}
    scrapes, ticks = [], []
    for second, load in enumerate(loads, start=1):
        sums["sum"] += load.decoding
        sums["tokens"] += load.decoding / load.per_token
        sums["prompts"] += load.prompt_tokens
        values = {
            "vllm:inter_token_latency_seconds_sum": sums["sum"],
            "vllm:inter_token_latency_seconds_bucket{le=0.01}": 0.0,
            "vllm:inter_token_latency_seconds_bucket{le=+Inf}": sums["tokens"],
            "vllm:prompt_tokens_total": sums["prompts"],
            "vllm:request_prompt_tokens_sum": 9.0 * sums["prompts"],
        }
        names = "\n".join(values) if second == 1 else None
        scrapes.append(SeriesScrape(at=second + 0.05 * number, names=names, numbers=pack_numbers(values.values())))
        sample = EngineSample(
            scrape_start=float(second), scrape_end=float(second), running=load.decoding + load.prefilling
        )
        ticks += [Tick(client=ClientTick(index=4 * second - 4 + part), engine=sample) for part in range(4)]
    assert TICK_SECONDS == 0.25
    history, times = ScrapeHistory(), TokenTimes()
    history.extend(scrapes)
    times.follow(history)
    return PacedServer(number=number, group=group, times=times, history=TickHistory(ticks))


def named(servers: Sequence[PacedServer]) -> dict[int, list[float]]:
    """The seconds at which each server is named slower; a server that never is has no entry."""
    grid = np.arange(1.0, SECONDS + 1)
    found = slower_factors(servers, grid)
    return {
        each.number: [float(at) for at in grid[row > 0]]
        for each, row in zip(servers, found, strict=True)
        if (row > 0).any()
    }


def slower_now(servers: Sequence[PacedServer], at: float) -> dict[int, tuple[float, float]]:
    return SlowerServers().now(servers, at)


def always(load: Load) -> list[Load]:
    return [load] * SECONDS


def from_second(begin: int, load: Load, *, until: int = SECONDS, before: Load | None = None) -> list[Load]:
    other = before or Load()
    return [load if begin <= second < until else other for second in range(SECONDS)]


@pytest.mark.parametrize("factor", [1.8, 4.0, 10.0])
def test_a_server_that_becomes_slower_is_named_within_five_seconds_and_no_other(factor: float) -> None:
    slow = from_second(20, Load(per_token=factor * STEP, prompt_tokens=1000 / factor))
    servers = [server(0, always(Load())), server(1, slow), server(2, always(Load()))]
    (number,), (seconds,) = named(servers).keys(), named(servers).values()
    assert number == 1
    assert 20 < seconds[0] <= 25
    assert seconds[-1] == SECONDS
    now = slower_now(servers, 35.0)
    assert now.keys() == {1}
    assert now[1][0] == pytest.approx(factor)
    assert 20 <= now[1][1] <= 24
    assert slower_text(4.1) == "4.1 × their time per output token"


def test_one_whose_batch_grows_with_its_times_stays_named_and_so_in_parts_of_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Under the same rate of requests: twice the time per token, so twice the batch, while the others' batches vary."""
    usual = [Load(decoding=4.0 + second % 3, per_token=STEP * (1 + 0.02 * (second % 3))) for second in range(SECONDS)]
    slow = [dataclasses.replace(each, decoding=2 * each.decoding, per_token=2 * each.per_token) for each in usual]
    servers = [server(0, usual), server(1, [*usual[:20], *slow[20:]]), server(2, usual)]
    found = named(servers)
    assert found.keys() == {1}
    assert 20 < found[1][0] <= 25
    assert found[1][-1] == SECONDS
    assert len(found[1]) >= 15
    monkeypatch.setattr(slower_servers, "_BLOCK", 7)
    assert named(servers) == found


def test_a_server_that_was_slower_is_not_named_any_more() -> None:
    slow = from_second(10, Load(per_token=4 * STEP), until=20)
    servers = [server(0, always(Load())), server(1, slow), server(2, always(Load()))]
    assert named(servers)[1][-1] <= 20 + 4 + KEPT
    assert slower_now(servers, 35.0) == {}


def test_one_that_was_always_slower_is_so_since_the_first_readings() -> None:
    servers = [server(0, always(Load())), server(1, always(Load(per_token=0.04))), server(2, always(Load()))]
    assert not math.isnan(slower_now(servers, 30.0)[1][1])
    assert slower_now(servers, 30.0)[1][1] <= 5.0


def test_of_two_servers_it_is_not_known_which_is_as_it_should_be() -> None:
    assert named([server(0, always(Load())), server(1, always(Load(per_token=4 * STEP)))]) == {}


def test_of_three_servers_with_two_slower_ones_none_is_named() -> None:
    slow = always(Load(per_token=4 * STEP))
    assert named([server(0, always(Load())), server(1, slow), server(2, slow)]) == {}


def test_servers_of_other_versions_or_models_are_not_compared() -> None:
    slow = server(3, always(Load(per_token=4 * STEP)), group="large 0.11.0")
    assert named([*(server(number, always(Load())) for number in range(3)), slow]) == {}


def test_few_tokens_name_no_server() -> None:
    few = Load(decoding=0.1, per_token=0.1)
    assert 3 * few.decoding / few.per_token < LEAST_TOKENS
    assert named([server(0, always(Load())), server(1, always(few)), server(2, always(Load()))]) == {}


def test_a_server_that_computes_more_prompts_than_the_others_is_not_slower() -> None:
    busy = always(Load(per_token=3 * STEP, prompt_tokens=8000))
    assert named([server(0, always(Load())), server(1, busy), server(2, always(Load()))]) == {}


def test_a_server_that_computes_one_long_prompt_is_not_slower() -> None:
    prompt = from_second(15, Load(per_token=5 * STEP, prefilling=1.0, prompt_tokens=0.0), until=21)
    prompt[21:30] = [Load(prompt_tokens=32_000 if second == 0 else 1000) for second in range(9)]
    assert named([server(0, always(Load())), server(1, prompt), server(2, always(Load()))]) == {}


def test_a_single_reading_names_no_server() -> None:
    stalled = from_second(20, Load(per_token=2.6 * STEP), until=21)
    assert named([server(0, always(Load())), server(1, stalled), server(2, always(Load()))]) == {}


def per_token(sequences: int, *, context: int = 500, time_scale: float = 1.0) -> float:
    """Seconds of an iteration of the simulator with some sequences of `context` tokens each."""
    cost = build_scheduler(sim_spec("llama-2-7b", gpu="a100-40", engine="vllm-0.2.1")).cost
    return time_scale * (cost.decode(sequences) + sequences * context * cost.kv_rate)


def simulated(number: int, sequences: int, *, context: int = 500, time_scale: float = 1.0) -> PacedServer:
    seconds = per_token(sequences, context=context, time_scale=time_scale)
    return server(number, always(Load(decoding=sequences, per_token=seconds)))


@pytest.mark.parametrize("batches", list(itertools.combinations_with_replacement((1, 4, 16, 64, 192), 3)))
@pytest.mark.parametrize("context", [100, 1000])
def test_equal_servers_of_the_simulator_under_unequal_loads_are_not_named(
    batches: tuple[int, ...], context: int
) -> None:
    assert named([simulated(number, size, context=context) for number, size in enumerate(batches)]) == {}


@pytest.mark.parametrize("sequences", [1, 4, 16, 64])
@pytest.mark.parametrize("time_scale", [2.0, 4.0])
def test_a_slowed_simulator_under_the_same_load_is_named(sequences: int, time_scale: float) -> None:
    servers = [simulated(0, sequences), simulated(1, sequences, time_scale=time_scale), simulated(2, sequences)]
    assert named(servers).keys() == {1}


@pytest.mark.parametrize(
    "gaps", [[3.0], [3.0, 3.25, 2.75], [1.0, 61.0, 4.0]], ids=["even", "uneven", "with a long one"]
)
def test_servers_that_are_followed_have_the_begin_of_all_times_searched_at_once(gaps: list[float]) -> None:
    slow = Load(per_token=3 * STEP, prompt_tokens=300)
    loads = [always(Load()), from_second(9, slow, until=22), from_second(25, slow), from_second(0, slow, until=12)]
    servers, followed, at = [server(number, each) for number, each in enumerate([*loads, *loads[:1] * 4])], [], 4.0
    alike, slower = SlowerServers(), 0
    for gap in itertools.cycle(gaps):
        if (at := at + gap) > SECONDS:
            break
        followed.append(alike.now(servers, at))
        assert followed[-1] == slower_now(servers, at), at
        slower += len(followed[-1])
    assert slower >= 1


def test_the_begin_stays_the_same_at_every_time_of_judgement() -> None:
    slow = from_second(12, Load(per_token=3 * STEP, prompt_tokens=300))
    servers = [server(number, each) for number, each in enumerate([always(Load()), slow, always(Load())])]
    alike, begins = SlowerServers(), set()
    for at in np.arange(14.0, SECONDS, 0.75):
        now = alike.now(servers, float(at))
        assert now == slower_now(servers, float(at))
        begins |= {since for _, since in now.values()}
    (begin,) = begins
    assert 12 <= begin <= 16


def test_a_begin_longer_ago_than_is_searched_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slower_servers, "LOOKBACK", 10.0)
    slow = from_second(5, Load(per_token=3 * STEP, prompt_tokens=300))
    servers = [server(number, each) for number, each in enumerate([always(Load()), slow, always(Load())])]
    alike = SlowerServers()
    since = {at: alike.now(servers, at)[1][1] for at in (10.0, 14.0, 18.0, 22.0)}
    assert since[10.0] == since[14.0] < 10
    assert math.isnan(since[22.0])
    assert math.isnan(slower_now(servers, 22.0)[1][1])


def test_what_was_compared_before_is_not_compared_again() -> None:
    sizes: list[int] = []

    @dataclass(frozen=True, slots=True, kw_only=True, eq=False)
    class Counted(PacedServer):
        def pace(self, grid: FloatArray) -> TokenPace:
            sizes.append(grid.size)
            return PacedServer.pace(self, grid)

    loads = [always(Load()), always(Load()), from_second(5, Load(per_token=3 * STEP, prompt_tokens=300))]
    plain = [server(number, each) for number, each in enumerate(loads)]
    servers = [Counted(number=each.number, group=each.group, times=each.times, history=each.history) for each in plain]
    alike = SlowerServers()
    assert alike.now(servers, 34.0).keys() == {2}
    assert max(sizes) == 35
    sizes.clear()
    assert alike.now(servers, 37.0).keys() == {2}
    assert max(sizes) == 3 + KEPT + 2
