"""Every event is read from the file as it was written."""

import contextlib
import math
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from servetop.core.events import (
    Action,
    Command,
    EngineSample,
    GpuSample,
    LogLine,
    Note,
    RequestRecord,
    RequestStatus,
    Severity,
    StageChange,
    TokenSource,
)
from servetop.core.histogram import EMPTY, MAX_BUCKET, LogHistogram
from servetop.core.interfaces.replica_change import ReplicaChange, ReplicaState
from servetop.core.interfaces.series_scrape import SeriesScrape
from servetop.core.interfaces.skipped_cell import SkippedCell
from servetop.core.tick import ClientTick, LoadGauges, Tick
from servetop.recordings.format import schema
from servetop.recordings.format.row_codec import FlatCodec, RepeatedReader, RowBlock, absent_columns, columns_of
from servetop.recordings.format.tick_codec import pack_histogram, unpack_histograms
from servetop.recordings.read.open import OpenedFile
from servetop.recordings.read.table_reader import TableReader

Same = Callable[[Any, Any], bool]

instants = st.floats(min_value=0, max_value=1e6)
numbers = st.none() | st.floats(min_value=-1e18, max_value=1e18)
counts = st.integers(min_value=0, max_value=2**40)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
histograms = st.lists(
    st.tuples(st.floats(min_value=0, max_value=1e5), st.integers(1, 10**6)), max_size=30, unique=True
).map(lambda pairs: LogHistogram.of([value for value, _ in pairs], weights=[weight for _, weight in pairs]))


@st.composite
def requests(draw: st.DrawFn) -> RequestRecord:
    due = draw(instants)
    sent = draw(st.none() | st.floats(min_value=due, max_value=due + 100))
    chunk_tokens = draw(st.lists(st.integers(0, 70_000), max_size=20)) if sent is not None else []
    gaps = draw(st.lists(st.floats(0, 100), min_size=len(chunk_tokens), max_size=len(chunk_tokens)))
    return RequestRecord(
        id=draw(counts),
        stage=draw(st.integers(-1, 1000)),
        due=due,
        sent=sent,
        headers_at=draw(st.none() | instants),
        first_token_at=draw(st.none() | instants),
        done_at=draw(st.none() | instants),
        prompt_tokens=draw(counts),
        output_tokens=draw(counts),
        cached_tokens=draw(st.none() | counts),
        status=draw(st.sampled_from(RequestStatus)),
        error=draw(st.none() | texts),
        http_status=draw(st.none() | st.integers(100, 599)),
        worker=draw(st.integers(0, 64)),
        token_source=draw(st.sampled_from(TokenSource)),
        chunk_times=(sent or 0.0) + np.cumsum(np.array(gaps, dtype=np.float64)),
        chunk_tokens=np.array(chunk_tokens, dtype=np.int64),
        prompt_text=draw(st.none() | texts),
        output_text=draw(st.none() | texts),
    )


engine_samples = st.builds(EngineSample, scrape_start=instants, scrape_end=instants)
full_engine_samples = st.builds(
    EngineSample,
    scrape_start=instants,
    scrape_end=instants,
    **{name: numbers for name in EngineSample.__dataclass_fields__ if not name.startswith("scrape_")},
)
series_scrapes = st.builds(SeriesScrape, at=instants, names=st.none() | texts, numbers=st.binary(max_size=60))
gpu_samples = st.builds(
    GpuSample,
    at=instants,
    index=st.integers(0, 15),
    name=texts,
    utilisation=numbers,
    memory_used=st.none() | counts,
    engine_memory=st.none() | counts,
    throttled=st.none() | texts,
)
ticks = st.builds(
    Tick,
    client=st.builds(
        ClientTick,
        index=st.integers(0, 10_000_000),
        gauges=st.builds(
            LoadGauges,
            stage=st.integers(-1, 99),
            request_rate=st.none() | st.floats(min_value=0, allow_nan=False),
            max_concurrency=st.none() | counts,
            in_flight=counts,
            queued=counts,
            holding=st.booleans(),
            paused=st.booleans(),
        ),
        ok=counts,
        output_tokens=counts,
        cpu_seconds=st.floats(0, 10),
        ttft=histograms,
        itl=histograms,
        ttfot=histograms,
        slip=histograms,
        loop_lag=histograms,
    ),
    engine=st.none() | engine_samples | full_engine_samples,
    gpus=st.lists(gpu_samples, max_size=2).map(tuple),
)
stages = st.builds(
    StageChange,
    at=instants,
    index=st.integers(0, 10_000_000),
    label=texts,
    request_rate=st.none() | st.floats(min_value=0, allow_nan=False),
    max_concurrency=st.none() | counts,
    max_num_seqs=st.none() | counts,
    repeat=counts,
)
skipped_cells = st.builds(
    SkippedCell,
    at=instants,
    stage=counts,
    label=texts,
    request_rate=st.floats(min_value=0, allow_nan=False),
    max_concurrency=st.none() | counts,
    max_num_seqs=st.none() | counts,
    repeat=counts,
    settings=st.none() | texts,
    reason=texts,
)
replica_changes = st.builds(
    ReplicaChange,
    at=instants,
    replica=counts,
    name=texts,
    url=texts,
    state=st.sampled_from(ReplicaState),
    reason=texts,
    engine=st.none() | texts,
    not_ready=st.none() | texts,
)
notes = st.builds(Note, at=instants, severity=st.sampled_from(Severity), source=texts, text=texts)
log_lines = st.builds(LogLine, at=instants, text=texts, stream=texts)


def reader_of(connection: sqlite3.Connection) -> TableReader:
    return TableReader(OpenedFile(connection, in_memory=True), Path("memory"))


def stored(table: schema.EventTable, events: list[Any]) -> list[Any]:
    """Write the events to SQLite and read them back."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        schema.create_tables(connection)
        connection.executemany(table.insert, [table.codec.encode(event) for event in events])
        return reader_of(connection).events(table)


EVENTS = {
    "request": (schema.REQUEST, requests()),
    "tick": (schema.TICK, ticks),
    "engine_sample": (schema.ENGINE_SAMPLE, full_engine_samples),
    "replica_change": (schema.REPLICA_CHANGE, replica_changes),
    "engine_series": (schema.ENGINE_SERIES, series_scrapes),
    "gpu_sample": (schema.GPU_SAMPLE, gpu_samples),
    "stage": (schema.STAGE, stages),
    "skipped_cell": (schema.SKIPPED_CELL, skipped_cells),
    "note": (schema.NOTE, notes),
    "log_line": (schema.LOG_LINE, log_lines),
}


@pytest.mark.parametrize("kind", EVENTS)
def test_events_are_read_as_they_were_written(kind: str, same: Same) -> None:
    table, strategy = EVENTS[kind]

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(st.lists(strategy, max_size=4))
    def check(events: list[Any]) -> None:
        assert all(map(same, stored(table, events), events))
        assert len(stored(table, events)) == len(events)

    check()


@given(histograms)
def test_a_histogram_keeps_every_count_and_its_exact_total(histogram: LogHistogram) -> None:
    (back,) = unpack_histograms([pack_histogram(histogram)])
    assert back == histogram
    assert back.total == histogram.total
    assert (back.buckets.tolist(), back.counts.tolist()) == (histogram.buckets.tolist(), histogram.counts.tolist())
    assert hash(back) == hash(histogram)


def test_an_empty_histogram_takes_no_space() -> None:
    assert pack_histogram(EMPTY) is None
    assert unpack_histograms([None]) == [EMPTY]


def test_a_histogram_takes_eight_bytes_and_six_per_bucket() -> None:
    histogram = LogHistogram(np.array([1, 700], np.int32), np.array([3, 70_000], np.int64), 1.5)
    assert pack_histogram(histogram) == (
        b"\x00\x00\x00\x00\x00\x00\xf8\x3f" + b"\x01\x00\x03\x00\x00\x00" + b"\xbc\x02\x70\x11\x01\x00"
    )


@pytest.mark.parametrize("blob", [b"", b"12345678", b"12345678123", b"\0" * 8 + b"\xff\xff\x01\0\0\0"])
def test_an_invalid_histogram_is_an_error(blob: bytes) -> None:
    with pytest.raises(ValueError, match="histogram"):
        unpack_histograms([blob])
    assert MAX_BUCKET < 0xFFFF


def test_nan_from_a_garbled_metrics_page_is_stored_as_unknown() -> None:
    (back,) = stored(schema.ENGINE_SAMPLE, [EngineSample(scrape_start=1.0, scrape_end=1.1, running=math.nan)])
    assert back.running is None


def test_log_lines_that_are_not_unicode_are_stored() -> None:
    line = b"loading \xff\xfe weights".decode("utf-8", "surrogateescape")
    (back,) = stored(schema.LOG_LINE, [LogLine(at=1.0, text=line)])
    assert back.text == "loading ?? weights"


def test_absurd_counts_are_clipped_to_the_range_of_a_column() -> None:
    absurd = Note(at=0.0, severity=Severity.INFO, source="", text="")
    assert stored(schema.NOTE, [absurd]) == [absurd]
    (back,) = stored(
        schema.STAGE,
        [StageChange(at=0, index=0, label="", request_rate=1, max_concurrency=10**30, max_num_seqs=-(10**30))],
    )
    assert (back.max_concurrency, back.max_num_seqs) == (2**63 - 1, -(2**63 - 1))


def test_a_command_is_read_with_its_row_number_as_id() -> None:
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        schema.create_tables(connection)
        connection.execute("INSERT INTO command (at, action, value, text, source) VALUES (1, 'set_rate', 8, '', 'me')")
        (command,) = reader_of(connection).events(schema.COMMAND)
    assert command == Command(id=1, at=1.0, action=Action.SET_RATE, value=8.0, source="me")


def test_following_rows_with_the_same_values_are_one_event() -> None:
    read = RepeatedReader(LoadGauges, columns_of(LoadGauges))
    row = dict.fromkeys((column.name for column in columns_of(LoadGauges)), None) | {
        "stage": 1,
        "in_flight": 2,
        "queued": 0,
        "holding": 0,
        "paused": 0,
    }
    first = read(row)
    assert read(dict(row)) is first
    assert read(row | {"in_flight": 3}) == LoadGauges(stage=1, in_flight=3)
    assert read(row) == first
    older = {name: value for name, value in row.items() if name != "sender_class"}
    assert read(older) == read(older) == LoadGauges(stage=1, in_flight=2)


def test_a_block_of_rows_makes_each_row_a_mapping_of_its_names() -> None:
    block = RowBlock(("seq", "at"), [(1, 0.5, True), (2, 1.5, True)])
    assert list(block) == [{"seq": 1, "at": 0.5}, {"seq": 2, "at": 1.5}]
    assert (block[1], list(block[:1]), len(block)) == ({"seq": 2, "at": 1.5}, [{"seq": 1, "at": 0.5}], 2)
    assert block.columns == {"seq": (1, 2), "at": (0.5, 1.5)}
    assert RowBlock(("seq",), []).columns == {}


def test_a_block_of_an_older_file_is_read_by_columns_too() -> None:
    codec = FlatCodec(EngineSample)
    sample = EngineSample(scrape_start=1.0, scrape_end=2.0, running=3.0, requests_failed_total=4.0)
    names = [each.name for each in codec.columns if each.name != "requests_failed_total"]
    values = dict(zip([each.name for each in codec.columns], codec.encode(sample), strict=True))
    block = RowBlock(names, [tuple(values[name] for name in names)])
    assert block.columns_with(absent_columns(EngineSample, codec.columns)).keys() == values.keys()
    assert codec.decode_all(block) == codec.decode_all([*block]) == [replace(sample, requests_failed_total=None)]
