"""The counters of a server, and the start of its process, show that it restarted."""

from __future__ import annotations

from collections.abc import Sequence

from servetop.analysis.cells.attempts import RESUMED
from servetop.analysis.confounding.server_restarts import ServerRestarts
from servetop.core.events import EngineSample, Note, ReplicaSample, Severity
from servetop.core.interfaces.series_scrape import PROCESS_START, SeriesScrape, pack_numbers
from servetop.core.tick import ClientTick, Tick


def ticks(*totals: float | None, first: int = 0) -> list[Tick]:
    """Ticks of a second of a server that had generated these tokens."""
    return [
        Tick(
            client=ClientTick(index=4 * place),
            engine=EngineSample(scrape_start=place, scrape_end=place + 0.1, generation_tokens_total=total),
        )
        for place, total in enumerate(totals, start=first)
    ]


def note(source: str, text: str, *, at: float) -> Note:
    return Note(at=at, severity=Severity.INFO, source=source, text=text)


def restarts(samples: Sequence[Tick], *notes: Note, managed: bool = False) -> list[float]:
    found = ServerRestarts(managed=managed)
    found.add(samples, (), notes)
    return found.times


def test_counters_that_begin_anew_are_a_restart() -> None:
    assert restarts(ticks(500.0, 700.0, 60.0, 260.0)) == [2.1]
    assert restarts(ticks(500.0, 700.0, None, 60.0, 90.0, 10.0)) == [3.1, 5.1]


def test_counters_that_rise_or_are_missing_are_none() -> None:
    assert restarts(ticks(None, 0.0, 0.0, 90.0, None, 5000.0)) == []


def test_a_sample_that_several_ticks_have_counts_once() -> None:
    found = ServerRestarts()
    samples = ticks(500.0, 60.0)
    for each in [samples[0], samples[1], samples[1]]:
        found.add([each], (), ())
    assert found.times == [1.1]


def test_two_servers_that_answer_in_turn_did_not_restart() -> None:
    assert restarts(ticks(5000.0, 900.0, 5100.0, 1000.0, 5200.0, 1100.0)) == []


def test_each_of_several_servers_has_its_own_counters() -> None:
    found = ServerRestarts(replicas=True)
    rows = [(0, 0.0, 900.0), (1, 0.0, 50.0), (0, 1.0, 950.0), (1, 1.0, 80.0), (1, 2.0, 3.0)]
    samples = [
        ReplicaSample(replica=number, scrape_start=at, scrape_end=at + 0.1, requests_finished_total=total)
        for number, at, total in rows
    ]
    found.add(ticks(900.0, 2.0), samples, ())
    assert found.times == [2.1], "the sum of all servers does not count"


def test_an_engine_that_the_run_restarts_is_another_server() -> None:
    change = note("engine", "max_num_seqs 8 → 16: restarting the engine", at=2.5)
    assert restarts(ticks(500.0, 700.0, 900.0, 60.0), change, managed=True) == [2.5]
    assert restarts([], change, managed=True) == [2.5], "without metrics too"


def test_a_session_that_starts_the_same_engine_again_is_no_restart_but_one_of_an_attached_server_is() -> None:
    seam = note(RESUMED, "the run continues", at=1.5)
    for managed, expected in ((True, []), (False, [2.1])):
        assert restarts(ticks(500.0, 700.0, 60.0), seam, managed=managed) == expected
    found = ServerRestarts(managed=True)
    found.add(ticks(500.0, 700.0), (), [seam])
    found.add(ticks(60.0, first=2), (), ())
    assert found.times == []


def series(*starts: float, name: str = PROCESS_START) -> list[SeriesScrape]:
    """Scrapes of a second with the start of the process between two other series; names are in the first only."""
    names = f"vllm:a\n{name}\nvllm:b"
    return [
        SeriesScrape(at=float(place), names=None if place else names, numbers=pack_numbers([5.0, start, 6.0]))
        for place, start in enumerate(starts)
    ]


def restarts_of_series(scrapes: Sequence[SeriesScrape], *notes: Note, managed: bool = False) -> list[float]:
    found = ServerRestarts(managed=managed)
    for each in scrapes:
        found.add((), (), (), [each])
    alone = found.times
    at_once = ServerRestarts(managed=managed)
    at_once.add((), (), notes, scrapes)
    assert notes or alone == at_once.times
    return at_once.times


def test_another_start_of_the_process_is_a_restart() -> None:
    assert restarts_of_series(series(1.7e9, 1.7e9, 1.7e9 + 60, 1.7e9 + 60, 1.7e9 + 600)) == [2.0, 4.0]
    assert restarts_of_series(series(1.7e9, 1.7e9 + 60, name=PROCESS_START + "{replica=1}")) == [1.0]


def test_the_same_start_or_another_series_is_none() -> None:
    assert restarts_of_series(series(1.7e9, 1.7e9 + 0.4, 1.7e9)) == []
    assert restarts_of_series(series(1.0, 50.0, name="vllm:requests_total")) == []


def test_starts_that_alternate_are_those_of_two_servers_behind_one_address() -> None:
    assert restarts_of_series(series(1.7e9, 1.8e9, 1.7e9, 1.8e9, 1.9e9)) == []


def test_a_start_and_counters_of_one_restart_count_once() -> None:
    found = ServerRestarts()
    found.add(ticks(500.0, 700.0, 60.0), (), (), series(1.7e9, 1.7e9, 1.7e9, 1.7e9 + 60))
    assert found.times == [2.1]


def test_a_damaged_scrape_of_starts_is_omitted() -> None:
    first, _, third = series(1.7e9, 1.7e9, 1.7e9 + 60)
    damaged = SeriesScrape(at=1.0, numbers=b"no numbers")
    assert restarts_of_series([damaged, first, damaged, third]) == [2.0]


def test_an_engine_that_servetop_starts_again_to_resume_has_another_start_and_is_the_same_server() -> None:
    scrapes = series(1.7e9, 1.7e9, 1.7e9 + 60, 1.7e9 + 60)
    resumed = note(RESUMED, "the run continues", at=1.5)
    assert restarts_of_series(scrapes, resumed, managed=True) == []
    assert restarts_of_series(scrapes, resumed, managed=False) == [2.0]
    found = ServerRestarts(managed=True)
    found.add((), (), (), scrapes[:2])
    found.add((), (), [resumed], ())
    found.add((), (), (), scrapes[2:])
    assert found.times == []
