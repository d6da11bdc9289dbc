"""What is noted about the metrics of a server: each reason once in an outage, and their return."""

from __future__ import annotations

from dataclasses import dataclass, field

from servetop.core.events import EngineSample
from servetop.engines.adapters.vllm import VllmEngine
from servetop.engines.engine import Engine
from servetop.run.loop.metrics_notes import MOST_REASONS, MetricsNotes

SAMPLE = EngineSample(scrape_start=1.0, scrape_end=1.1, running=3.0)
ANSWER = EngineSample(scrape_start=1.0, scrape_end=1.1)


@dataclass
class Server:
    metrics_trouble: str | None = None
    not_ready: str = ""
    engine: Engine = field(default_factory=VllmEngine)


def noted(troubles: list[str | None], last: EngineSample) -> list[str]:
    notes, server, texts = MetricsNotes(), Server(), []
    for at, trouble in enumerate(troubles):
        server.metrics_trouble = trouble
        texts += [each.text for each in notes.of(server, [] if trouble else [last], at=float(at))]
    return texts


def test_readings_that_fail_in_turn_for_two_reasons_are_noted_once_each() -> None:
    assert noted(["too long", "no response", "too long", "no response", None, "too long"], SAMPLE) == [
        "too long", "no response", "metrics are back", "too long",
    ]  # fmt: skip


def test_a_server_whose_errors_all_differ_does_not_fill_the_log() -> None:
    assert len(noted([f"error {number}" for number in range(100)], SAMPLE)) == MOST_REASONS


def test_a_server_without_metrics_that_answers_again_has_no_metrics_back() -> None:
    assert noted(["no answer", None], ANSWER) == ["no answer", "it answers again"]


def test_a_server_that_takes_no_requests_is_noted_once_while_its_metrics_are_read() -> None:
    notes, server, texts = MetricsNotes(), Server(), []
    for not_ready, sample in (
        ("", SAMPLE),
        ("/health: HTTP 503", ANSWER),
        *2 * [("/health: HTTP 503", SAMPLE)],
        ("", SAMPLE),
    ):
        server.not_ready = not_ready
        texts += [(each.severity.value, each.text) for each in notes.of(server, [sample], at=1.0)]
    assert [each for each in texts if "requests" in each[1]] == [
        ("warning", "takes no new requests (/health: HTTP 503), and its metrics are read"),
        ("info", "takes requests again, by its health page"),
    ]
