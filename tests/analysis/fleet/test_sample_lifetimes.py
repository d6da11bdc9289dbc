"""A sample from a Prometheus server stands for a server until the next one is late, by the scrapes before."""

import numpy as np

from servetop.analysis.fleet.replica_rows import replica_history
from servetop.analysis.fleet.sample_lifetimes import LONGEST_LIFETIME, rare_lifetimes
from servetop.analysis.series.page_rates import page_rates
from servetop.core.events import ReplicaSample
from servetop.core.interfaces.replica_change import ReplicaChange, ReplicaState, facts_text
from servetop.core.interfaces.run_source import EngineFacts
from servetop.core.tick import ClientTick, Tick

FACTS = EngineFacts(name="vllm", title="vLLM", through="http://prom:9090")
ATTACHED = ReplicaChange(
    at=1.0, replica=0, name="a", url="http://a", state=ReplicaState.ATTACHED, engine=facts_text(FACTS)
)


def test_the_next_scrape_is_expected_after_the_interval_and_a_first_one_after_two_minutes() -> None:
    assert rare_lifetimes(np.array([5.0])).tolist() == [120.0]
    assert rare_lifetimes(np.array([-8.5, 6.5, 21.5])).tolist() == [120.0, 30.0, 30.0]
    assert rare_lifetimes(np.array([0.0, 60.0])).tolist() == [120.0, 120.0]
    assert rare_lifetimes(np.array([])).tolist() == []
    assert rare_lifetimes(np.array([0.0, 1.0]))[-1] == 3.0, "as often as the server itself is read"


def test_after_an_outage_the_next_scrape_is_expected_as_soon_as_before() -> None:
    assert rare_lifetimes(np.array([0.0, 15.0, 90.0])).tolist()[-1] == 30.0
    assert rare_lifetimes(np.array([0.0, 1000.0]))[-1] == LONGEST_LIFETIME == 240.0


def test_rates_are_those_from_scrape_to_scrape_from_the_first_second_on() -> None:
    scraped = (-8.5, 6.5, 21.5, 36.5, 51.5)
    samples = [
        ReplicaSample(
            replica=0, scrape_start=at, scrape_end=at, running=4.0, generation_tokens_total=1000.0 + 300 * number
        )
        for number, at in enumerate(scraped)
    ]
    rows = [Tick(client=ClientTick(index=index)) for index in range(400)]
    history = replica_history(rows, samples, [ATTACHED])
    running = history.column("running")
    assert np.flatnonzero(~np.isnan(running))[[0, -1]].tolist() == [3, 325], "from attaching to two intervals later"
    rates = page_rates(history, "engine_output_tokens", start=0, stop=400, window=10.0)
    known = rates[~np.isnan(rates)]
    np.testing.assert_allclose(known, 20.0)
    assert known.size == 326 - 25, "from the second scrape on"
