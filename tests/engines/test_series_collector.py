"""The further series of a metrics page are read once a second, and survive any text."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from servetop.analysis.exported.metric_spec import Unit
from servetop.core.interfaces.series_scrape import MAX_SERIES, unpack_numbers
from servetop.engines.metrics.exported_tables import EXPORTED_BY
from servetop.engines.metrics.series_collector import ReplicaReadings, SeriesCollector, SeriesPacker, SeriesReading
from servetop.engines.metrics.spec_builders import gauge_of, rate_of

SPECS = (
    rate_of("G", "finished", "done", by="reason", unit=Unit.REQUESTS_PER_SECOND),
    gauge_of("G", "usage", "usage", unit=Unit.SHARE),
    gauge_of("G", "waiting", "waiting"),
)


def collected(page: bytes, collector: SeriesCollector | None = None, *, at: float = 0.0) -> dict[str, float]:
    collector = collector or SeriesCollector(SPECS)
    collector.collect({"/metrics": page}, at=at)
    reading = collector.take()
    return {} if reading is None else dict(reading.values)


def test_rows_that_differ_in_other_labels_are_added_up() -> None:
    rows = (b'{engine="0",reason="stop"} 3', b'{engine="1",reason="stop"} 4', b'{reason="abort"} 1')
    assert collected(b"\n".join(b"done_total" + row for row in rows)) == {
        "done_total{reason=stop}": 7.0,
        "done_total{reason=abort}": 1.0,
    }


def test_a_share_is_kept_for_each_rank_so_that_it_can_be_averaged() -> None:
    assert collected(b'usage{engine="0"} 0.5\nusage{engine="1"} 1\n') == {
        "usage{engine=0}": 0.5,
        "usage{engine=1}": 1.0,
    }


def test_a_real_vllm_page_is_read_number_for_number(vllm_data: Path) -> None:
    page = (vllm_data / "metrics_0.32.0.txt").read_bytes()
    values = collected(page, SeriesCollector(EXPORTED_BY["vllm"]))
    assert values["vllm:num_requests_waiting_by_reason{reason=capacity}"] == 14.0
    assert values["vllm:iteration_tokens_total_sum"] == 47123.0
    assert values["vllm:iteration_tokens_total_count"] == 4069.0
    assert values["vllm:request_success_total{finished_reason=length}"] == 148.0
    assert values["vllm:request_queue_time_seconds_bucket{le=+Inf}"] == 148.0
    assert values["http_requests_total{status=4xx}"] == 2.0
    assert not [name for name in values if name.startswith("vllm:spec_decode")]


def test_a_second_passes_between_two_readings_unless_the_next_one_is_requested() -> None:
    collector = SeriesCollector(SPECS)
    assert collected(b"waiting 1\n", collector, at=10.0) == {"waiting": 1.0}
    assert collected(b"waiting 2\n", collector, at=10.25) == {}
    assert collected(b"waiting 3\n", collector, at=11.0) == {"waiting": 3.0}
    collector.collect_next()
    assert collected(b"waiting 4\n", collector, at=11.25) == {"waiting": 4.0}


def test_a_late_response_costs_no_reading_of_a_page_that_is_read_once_a_second() -> None:
    collector = SeriesCollector(SPECS)
    ends = (10.01, 11.01, 12.4, 13.01, 14.0, 16.2, 17.2)
    assert [bool(collected(b"waiting 1\n", collector, at=at)) for at in ends] == [True] * len(ends)


def test_four_pages_a_second_are_read_once_a_second_whenever_they_end() -> None:
    collector = SeriesCollector(SPECS)
    ends = [tick * 0.25 + (0.2 if tick % 3 else 0.0) for tick in range(400)]
    read = sum(bool(collected(b"waiting 1\n", collector, at=at)) for at in ends)
    assert 95 <= read <= 105


def test_a_counter_that_vanishes_keeps_its_value_and_a_gauge_does_not() -> None:
    collector = SeriesCollector(SPECS)
    assert collected(b'done{reason="stop"} 5\nwaiting 2\n', collector, at=0.0) == {
        "done{reason=stop}": 5.0,
        "waiting": 2.0,
    }
    assert collected(b"", collector, at=1.0) == {"done{reason=stop}": 5.0}


def test_unusable_values_and_labels_do_no_harm() -> None:
    page = b'waiting NaN\ndone{reason="a,b=c}\\n"} 1\ndone{reason="inf"} +Inf\nusage{engine=0} x\n'
    assert collected(page) == {"done{reason=a_b_c__}": 1.0}


@given(st.binary(max_size=400) | st.text(alphabet='done{}reason=",\\\n 0123456789.eE+-', max_size=400).map(str.encode))
def test_any_page_is_read_without_an_error(page: bytes) -> None:
    assert all(abs(value) <= 1e18 for value in collected(page).values())


def test_a_page_with_too_many_series_is_cut() -> None:
    page = b"".join(b'done{reason="%d"} 1\n' % number for number in range(MAX_SERIES + 10))
    assert len(collected(page)) == MAX_SERIES


def test_names_are_packed_once_and_again_when_they_change() -> None:
    packer = SeriesPacker()
    first, second, third, later = (
        packer.pack(SeriesReading(at, values))
        for at, values in [
            (0.0, {"a": 1.0}),
            (1.0, {"a": 2.0}),
            (2.0, {"a": 3.0, "b": 4.0}),
            (400.0, {"a": 5.0, "b": 6.0}),
        ]
    )
    assert [each.names for each in (first, second, third, later)] == ["a", None, "a\nb", "a\nb"]
    assert unpack_numbers(third.numbers, count=2) is not None
    assert unpack_numbers(third.numbers, count=3) is None
    assert unpack_numbers(b"damaged", count=2) is None


def test_the_series_of_replicas_are_told_apart_and_a_missing_one_keeps_its_last_values() -> None:
    readings = ReplicaReadings()
    readings.add(0, SeriesReading(5.0, {"done{reason=stop}": 1.0}))
    readings.add(1, SeriesReading(5.1, {"waiting": 2.0}))
    first = readings.take()
    readings.add(0, None)
    readings.add(1, SeriesReading(5.3, {"waiting": 3.0}))
    assert readings.take() is None
    readings.add(1, SeriesReading(6.1, {"waiting": 4.0}))
    second = readings.take()
    assert first == SeriesReading(5.1, {"done{reason=stop,replica=0}": 1.0, "waiting{replica=1}": 2.0})
    assert second == SeriesReading(6.1, {"done{reason=stop,replica=0}": 1.0, "waiting{replica=1}": 4.0})


def test_the_start_of_the_process_is_read_of_any_engine() -> None:
    page = b"# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds 1.7e+09\nother 3\n"
    assert collected(page, SeriesCollector(())) == {"process_start_time_seconds": 1.7e9}
    assert collected(b"other 3\n", SeriesCollector(())) == {}
