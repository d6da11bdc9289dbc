"""`servetop watch --threshold`: exit code 99, 98 or 0, with the server and since when."""

from __future__ import annotations

import contextlib

import pytest

from servetop.recordings.read.reader import RecordingReader
from tests.harness import Servetop, printed_url
from tests.watched_server import watched_server

FOR_A_SECOND = ("--headless", "--duration", "4s", "--for", "1s")


@pytest.mark.integration
def test_a_server_that_breaks_a_threshold_is_named_with_the_time(servetop: Servetop) -> None:
    with watched_server(counts={"waiting": 30.0}) as full, watched_server() as calm:
        servers = (f"gpu7={full.url}", f"gpu8={calm.url}")
        done = servetop("watch", *servers, *FOR_A_SECOND, "--threshold", "waiting<=10", "--threshold", "kv_usage<90%")
    assert done.code == 99, done.err
    assert "gpu7: waiting<=10 was broken from 0:0" in done.err
    assert "gpu8" not in done.err.splitlines()[-1]
    (recording,) = servetop.folder.glob("*.servetop")
    with contextlib.closing(RecordingReader.open(recording)) as reader:
        assert reader.end is not None
        assert reader.end.exit_code == 99
        assert reader.header.config.thresholds == ("waiting<=10", "kv_usage<90%")


@pytest.mark.integration
def test_thresholds_that_are_kept_or_cannot_be_decided(servetop: Servetop) -> None:
    with watched_server() as calm:
        kept = servetop("watch", calm.url, *FOR_A_SECOND, "--threshold", "kv_usage<90%", "--threshold", "running>=1")
        missing = servetop("watch", calm.url, *FOR_A_SECOND, "--no-record", "--threshold", "itl_p90<50ms")
    assert kept.code == 0, kept.err
    assert missing.code == 98, missing.err
    assert missing.err.splitlines()[-1] == "servetop: itl_p90<50ms: itl_p90 was not measured"


@pytest.mark.integration
def test_a_latency_is_judged_by_the_servers_own_histogram(servetop: Servetop) -> None:
    with servetop.started("serve", "--port", "0") as process:
        url = printed_url(process)
        load = ("--num-prompts", "400", "--request-rate", "20", "--input-len", "16", "--output-len", "8", "--json")
        with Servetop(servetop.folder).started("--url", url, *load, "--no-record") as requests:
            slow = servetop("watch", url, "--headless", "--duration", "21s", "--threshold", "ttft_p90<0.001ms")
            requests.communicate(timeout=120)
        process.terminate()
        process.communicate(timeout=60)
    assert slow.code == 99, slow.err
    assert "ttft_p90<0.001ms was broken from 0:" in slow.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--threshold", "kv_usage<90"), "the limit of kv_usage is a percentage, as in 90%"),
        (("--threshold", "p42_ttft_ms<=500"), "a watch has no metric 'p42_ttft_ms'"),
        (("--threshold", "waiting<9", "--duration", "5s"), "--for 10s is longer than --duration 5s: shorten it"),
        (("--for", "5s"), "--for: it is how long a --threshold has to be broken: add one"),
    ],
)
def test_wrong_options_are_refused_before_the_watch(servetop: Servetop, words: tuple[str, ...], message: str) -> None:
    done = servetop("watch", "http://127.0.0.1:9", "--headless", *words)
    assert done.code == 2
    assert message in done.err
