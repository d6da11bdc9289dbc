"""The samples of a recording as OpenMetrics."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from servetop.core.clock import ClockAnchor
from servetop.core.config import RunConfig
from servetop.core.errors import UsageError
from servetop.core.events import GpuSample, RunEnd
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.tick import ClientTick, Tick
from servetop.recordings.format.schema import ENGINE_SAMPLE, TICK
from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.reports.export.openmetrics_text import openmetrics_text
from tests.recorded_watches import watch_of_one

SAMPLE = re.compile(
    r'(?P<name>[a-z0-9_]+)\{recording="(?P<recording>.*?)"(?:,gpu="(?P<gpu>\d+)")?\} (?P<value>\S+) (?P<at>\S+)'
)


@pytest.fixture(scope="module")
def sample() -> Iterator[RecordingReader]:
    with contextlib.closing(RecordingReader.open(resolve("sample"))) as reader:
        yield reader


def samples_of(text: str, name: str) -> list[tuple[float, float]]:
    """The values and times of a metric."""
    found = [SAMPLE.fullmatch(line) for line in text.splitlines() if line.startswith(f"{name}{{")]
    return [(float(each["value"]), float(each["at"])) for each in found if each is not None]


def test_ticks_and_scrapes_are_samples_at_their_times(sample: RecordingReader) -> None:
    text, epoch = "".join(openmetrics_text(sample)), sample.header.anchor.wall_epoch_s
    ticks, scrapes = list(sample.stream(TICK)), list(sample.stream(ENGINE_SAMPLE))
    sent = samples_of(text, "servetop_client_sent_requests")
    assert [value for value, _ in sent] == [tick.client.sent for tick in ticks]
    assert [at for _, at in sent] == pytest.approx([epoch + tick.end for tick in ticks], abs=0.001)
    known = [each for each in scrapes if each.kv_usage is not None]
    usage = samples_of(text, "servetop_engine_kv_usage_ratio")
    assert [value for value, _ in usage] == [each.kv_usage for each in known]
    assert [at for _, at in usage] == pytest.approx([epoch + each.scrape_end for each in known], abs=0.001)


def test_a_metric_has_its_type_and_all_its_samples_together(sample: RecordingReader) -> None:
    text = "".join(openmetrics_text(sample))
    assert text.endswith("# EOF\n")
    assert text.count("# EOF") == 1
    assert "# TYPE servetop_engine_preemptions counter\n" in text
    assert "# TYPE servetop_client_ttft_p99_seconds gauge\n" in text
    names = [line.partition("{")[0] for line in text.splitlines() if not line.startswith("#")]
    changes = [name for number, name in enumerate(names) if not number or names[number - 1] != name]
    assert len(changes) == len(set(changes))


def test_the_parser_of_prometheus_reads_every_sample(sample: RecordingReader) -> None:
    lines = "".join(openmetrics_text(sample)).splitlines(keepends=True)
    families = list(text_string_to_metric_families("".join(lines)))  # type: ignore[no-untyped-call]
    assert len(families) == sum(line.startswith("# TYPE") for line in lines)
    assert sum(len(each.samples) for each in families) == sum(not line.startswith("#") for line in lines)


def record(path: Path, *gpus: GpuSample, ticks: int = 1) -> RecordingReader:
    recorder = Recorder.create(path, RunHeader(config=RunConfig(), anchor=ClockAnchor.take()))
    for index in range(ticks):
        recorder.commit(TickTransaction(tick=Tick(client=ClientTick(index=index)), gpu_samples=gpus))
    recorder.close(RunEnd(at=1.0, exit_code=0, reason=""))
    return RecordingReader.open(path)


def test_unknown_values_have_no_sample_and_each_gpu_its_label(tmp_path: Path) -> None:
    gpus = [GpuSample(at=0.1, index=index, name="H100", power=100.0 + index) for index in (1, 0)]
    with contextlib.closing(record(tmp_path / 'a "b" \\.servetop', *gpus)) as reader:
        text = "".join(openmetrics_text(reader))
    found = [SAMPLE.fullmatch(line) for line in text.splitlines() if line.startswith("servetop_gpu_")]
    assert [(each["gpu"], each["value"]) for each in found if each is not None] == [("0", "100.0"), ("1", "101.0")]
    assert {each["recording"] for each in found if each is not None} == {'a \\"b\\" \\\\'}
    assert not math.isnan(samples_of(text, "servetop_client_sent_requests")[0][0])


def test_a_recording_without_samples_is_refused(tmp_path: Path) -> None:
    with (
        contextlib.closing(record(tmp_path / "run.servetop", ticks=0)) as reader,
        pytest.raises(UsageError, match="no samples"),
    ):
        "".join(openmetrics_text(reader))


def test_a_watch_has_no_metrics_of_a_client(tmp_path: Path) -> None:
    with contextlib.closing(RecordingReader.open(watch_of_one(tmp_path / "watch.servetop"))) as reader:
        text = "".join(openmetrics_text(reader))
    assert "servetop_engine_waiting" in text
    assert "servetop_client_" not in text
