"""What servetop says of a real vLLM that it did not start, and that exports no batch limit: what it can know."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from servetop.recordings.read.reader import RecordingReader
from servetop.reports.summary.recorded_run import recorded_run
from tests.harness import RAN, Servetop, wait_for
from tests.integration.harness import ENVIRONMENT, WITHOUT_CACHE, Vllm, counters, vllm_server, warm_up
from tests.integration.real_engines import started

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

BATCH = 4
LATE = "client-bound"
"""Two processors are shared with the engine: on a busy machine the client may be late, and says so."""
MISSED = "objectives missed"
UNSEEN = (LATE, "stalled", "overloaded")
"""What remains to be said of an overload if the server is too busy to answer: its pages do not come either."""
FEW_PAGES = 5.0
"""Seconds of the load without a metrics page from which the run may be known by its client only."""
FREE = "free KV blocks and batch slots"
SHAPE = ("--input-len", "12", "--output-len", "150", "--ignore-eos", "--goodput", "ttft:500", "--drain-timeout", "3")
PATIENT = ("--attach-timeout", "300")
"""A server under another client's load, on a slow machine, may take a minute to say what it is."""
FULL = ("--max-concurrency", "24", "--drain-timeout", "300")
"""A load that fills any engine here, however slow the machine: with a rate, a slow one completes nothing at all."""
LONG = 20.0
"""Seconds of a load that can be judged: a fast machine serves some tens of requests before the second page comes."""


@dataclass(frozen=True)
class Told:
    """The verdict and the story of a run."""

    cause: str
    text: str
    sustainable: float | None
    seconds: float
    """How long the load lasted."""
    seen: bool
    """Whether metrics pages came during the whole load."""

    def may_be(self, *causes: str) -> bool:
        """Whether the cause is one of these; without pages the client may know only that objectives were missed."""
        return self.cause in causes if self.seen else self.cause in (*causes, *UNSEEN, MISSED)


@pytest.fixture(scope="module")
def small_batch(vllm: Vllm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a vLLM that runs few sequences at once, with many KV blocks."""
    settings = ("--max-num-seqs", str(BATCH), "--num-gpu-blocks-override", "512", WITHOUT_CACHE)
    with started(vllm_server(vllm, *settings), tmp_path_factory.mktemp("small") / "log") as engine:
        warm_up(engine.url, tmp_path_factory.mktemp("warm-up"))
        yield engine.url


def told(servetop: Servetop, url: str, *load: str) -> Told:
    """Run a load; a run whose requests all succeeded."""
    done = servetop("--url", url, *PATIENT, *SHAPE, *load, "--json")
    assert done.code in RAN, done.err
    summary = done.summary
    assert summary["engine"]["max_num_seqs"] is None
    assert summary["failed"] == 0
    story = summary["story"]
    text = "\n".join([story["headline"], *(line["text"] for line in story["lines"])])
    reader = RecordingReader.open(max(servetop.folder.glob("*.servetop"), key=lambda path: path.stat().st_mtime))
    seen = recorded_run(reader).longest_page_gap < FEW_PAGES
    seconds = summary["duration"]
    return Told(cause=story["cause"], text=text, sustainable=story["sustainable_rate"], seconds=seconds, seen=seen)


def told_of_full(servetop: Servetop, url: str) -> Told:
    """Fill the engine for long enough, with as many requests as the machine needs for that."""
    prompts = 96
    while (found := told(servetop, url, *FULL, "--num-prompts", str(prompts))).seconds < LONG:
        prompts *= math.ceil(1.5 * LONG / found.seconds)
    return found


def waiting(url: str) -> float:
    """vLLM's queue; none from a server that is too busy to tell."""
    with contextlib.suppress(OSError):
        return counters(url)["vllm:num_requests_waiting"]
    return 0.0


def test_a_full_batch_is_told_by_its_flat_running_count(small_batch: str, servetop: Servetop) -> None:
    found = told_of_full(servetop, small_batch)
    assert found.may_be("batch-bound", *UNSEEN), found.text
    assert FREE not in found.text
    if found.cause == "batch-bound":
        assert f"a batch limit of about {BATCH}" in found.text


def test_a_full_kv_cache_is_told_though_the_batch_limit_is_unknown(scarce_vllm: str, servetop: Servetop) -> None:
    found = told_of_full(servetop, scarce_vllm)
    assert found.may_be("KV-bound", *UNSEEN), found.text
    assert FREE not in found.text


def test_a_load_below_the_capacity_is_called_no_overload(small_batch: str, servetop: Servetop) -> None:
    steady = ("--request-rate", "1", "--burstiness", "100", "--duration", "25", "--output-len", "40")
    found = told(servetop, small_batch, *steady)
    assert found.may_be("headroom", "unclear", LATE, MISSED), found.text
    assert found.sustainable is None or found.sustainable <= 1.3


def test_a_limit_of_ones_own_is_not_blamed_on_the_engine(small_batch: str, servetop: Servetop) -> None:
    found = told(servetop, small_batch, "--request-rate", "60", "--max-concurrency", "2", "--duration", "15")
    assert found.may_be("concurrency-limited", LATE), found.text
    assert found.sustainable is None
    assert FREE not in found.text


def test_the_load_of_others_is_not_called_ones_own(small_batch: str, servetop: Servetop, tmp_path: Path) -> None:
    others = Servetop(tmp_path / "others", ENVIRONMENT)
    flood = ("--max-concurrency", str(3 * BATCH), "--duration", "400", "--no-record", "--headless")
    with others.started("--url", small_batch, *SHAPE, *flood) as process:
        wait_for(lambda: waiting(small_batch) > BATCH, seconds=60, what="the queue of other clients")
        found = told(servetop, small_batch, "--request-rate", "1", "--duration", "20")
        process.terminate()
        process.communicate(timeout=60)
    assert found.may_be("other traffic", LATE), found.text
    assert found.sustainable is None
    assert FREE not in found.text
