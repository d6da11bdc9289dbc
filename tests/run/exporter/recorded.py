"""The transactions of a recording, as the recorder was given them, and the samples of a page of metrics."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from servetop.recordings.format.schema import ENGINE_SAMPLE, REQUEST
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.tick_transaction import TickTransaction

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def transactions(reader: RecordingReader) -> Iterator[TickTransaction]:
    """Each tick with the stages that began and the requests that ended in it, and at last what followed it."""
    stages, requests, samples = list(reader.stages()), list(reader.stream(REQUEST)), list(reader.stream(ENGINE_SAMPLE))
    requests.sort(key=lambda each: each.done_at or each.due)
    samples.sort(key=lambda each: each.scrape_end)
    for tick in reader.ticks():
        began = [each for each in stages if each.at <= tick.end]
        ended = [each for each in requests if (each.done_at or each.due) <= tick.end]
        read = [each for each in samples if each.scrape_end <= tick.end]
        stages, requests, samples = stages[len(began) :], requests[len(ended) :], samples[len(read) :]
        yield TickTransaction(tick=tick, stages=began, requests=ended, engine_samples=read)
    yield TickTransaction(stages=stages, requests=requests, engine_samples=samples)


def samples_of(text: str) -> Samples:
    """The value of each series, by name and labels, of a page in OpenMetrics."""
    families = text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def falls(before: Samples, now: Samples) -> list[str]:
    """The counters and histograms that fell between two pages, or disappeared."""
    names = ("_total", "_bucket", "_sum", "_count")
    return [
        name for name, labels in before if name.endswith(names) and now.get((name, labels), -1) < before[name, labels]
    ]
