"""`servetop watch` as a user runs it, on a simulator under another servetop's load."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from servetop.core.config import WorkloadConfig
from servetop.core.config_values.watch_config import WatchConfig
from servetop.recordings.read.reader import RecordingReader
from tests.harness import RAN, Servetop, answers, printed_url, wait_for
from tests.integration.harness import counters
from tests.watched_server import watched_server, watching

LOAD = ("--num-prompts", "40", "--request-rate", "20", "--input-len", "32", "--output-len", "16", "--json")


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = Servetop(tmp_path_factory.mktemp("none"))
    with folder.started("serve", "--port", "0", "--max-num-seqs", "4") as process:
        url = printed_url(process)
        wait_for(lambda: answers(f"{url}/health"), seconds=30, what="the simulator")
        yield url
        process.terminate()
        process.communicate(timeout=120)


@pytest.mark.integration
def test_the_load_of_another_servetop_is_counted_to_the_token(
    servetop: Servetop, simulator: str, tmp_path: Path
) -> None:
    recording = tmp_path / "watch.servetop"
    with servetop.started("watch", simulator, "--headless", "--json", "--record", str(recording)) as watch:
        wait_for(lambda: watching(recording), seconds=60, what="the first metrics page")
        before = counters(simulator)
        load = Servetop(tmp_path / "load")("--url", simulator, *LOAD)
        assert load.code in RAN, load.err
        after = counters(simulator)
        watch.send_signal(signal.SIGINT)
        out, err = watch.communicate(timeout=120)
    assert watch.returncode == 0, err
    server = Servetop(tmp_path)("summary", str(recording), "--json").summary["server"]
    for figure, counter in (("generation_tokens", "vllm:generation_tokens"), ("prompt_tokens", "vllm:prompt_tokens")):
        name = next(each for each in (f"{counter}_total", counter) if each in after)
        assert server[figure] == after[name] - before[name]
    assert server["generation_tokens"] == load.summary["total_output_tokens"] == 640
    assert '"generation_tokens": 640' in out
    assert "serving" in err or "batch-bound" in err or "requests wait" in err


@pytest.mark.integration
def test_a_watch_of_some_seconds_prints_a_summary_without_a_client(servetop: Servetop, simulator: str) -> None:
    done = servetop("watch", simulator, "--headless", "--duration", "2s", "--label", "night")
    assert done.code == 0, done.err
    assert "verdict    watched for 0:0" in done.out
    assert "requests ok" not in done.out.lower()
    assert "trust" not in done.out
    (recording,) = servetop.folder.glob("*.servetop")
    with contextlib.closing(RecordingReader.open(recording)) as reader:
        config, facts = reader.header.config, reader.header.engine
        assert (config.watch, config.workload, config.stages) == (WatchConfig(duration=2.0), WorkloadConfig(), ())
        assert (facts is not None and facts.name, reader.end is not None and reader.end.exit_code) == ("sim", 0)
    again = servetop("summary", str(recording))
    assert again.out == done.out


@pytest.mark.integration
def test_a_given_batch_limit_is_that_of_the_server_and_nothing_is_set(servetop: Servetop) -> None:
    with watched_server() as server:
        done = servetop("watch", server.url, "--headless", "--duration", "1s", "--max-num-seqs", "7")
    assert done.code == 0, done.err
    assert {method for method, _ in server.seen} == {"GET"}
    (recording,) = servetop.folder.glob("*.servetop")
    with contextlib.closing(RecordingReader.open(recording)) as reader:
        facts = reader.header.engine
    assert facts is not None
    assert facts.max_num_seqs == 7


@pytest.mark.integration
def test_keys_and_headers_go_with_every_request(servetop: Servetop) -> None:
    with watched_server() as server:
        done = servetop("watch", server.url, "--headless", "--duration", "1s", "--no-record", "--json")
    assert done.code == 0, done.err
    assert {method for method, _ in server.seen} == {"GET"}
    assert (done.summary["backend"], done.summary["model_id"], done.summary["recording"]) == ("vllm", "tiny", None)


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (("http://127.0.0.1:9",), 3, "nothing answers at http://127.0.0.1:9 (connection refused): is the server up?"),
        (
            ("http://127.0.0.1:9", "http://127.0.0.1:13"),
            3,
            "none of 2 servers can be watched; the first: nothing answers",
        ),
        (("http://a:1", "http://a:1/v1"), 2, "http://a:1 is given twice: name each server once"),
        (("none.txt",), 2, "none.txt: no such file or directory: name a file with a server's address in each line"),
        (("http://a:1", "none.txt"), 2, "none.txt is a file beside other servers"),
        (("http://a:1", "http://b:1", "--metrics-url", "http://c:1"), 2, "--metrics-url belongs to one server"),
        (('http://p:1/?match={a="b"}', "http://a:1"), 2, "lists all servers of a watch: name it alone"),
        (('http://127.0.0.1:9/?match={a="b"}',), 3, "no list of servers from the Prometheus server at"),
        (("http://127.0.0.1:9/?match=up",), 2, "must be a selector"),
        (('http://p:1/?match={a="b"}', "--metrics-api-key-env", "NO_KEY_HERE"), 2, "NO_KEY_HERE"),
        (("https://a:1", "--all-addresses"), 2, "--all-addresses: the certificate of https://a:1"),
        (("http://gpu7.invalid:1", "--all-addresses"), 3, "gpu7.invalid cannot be resolved"),
        (("http://127.0.0.1:9", "--against", "latest"), 2, "--against: a watch sends no load"),
        (("--duration", "1s"), 2, "Missing argument 'URL|FILE'"),
        (("http://127.0.0.1:9", "--duration", "soon"), 2, "--duration"),
        (("http://127.0.0.1:9", "--api-key-env", "NOT_SET_ANYWHERE"), 2, "NOT_SET_ANYWHERE"),
    ],
)
@pytest.mark.integration
def test_bad_input_is_one_line(servetop: Servetop, words: tuple[str, ...], code: int, complaint: str) -> None:
    done = servetop("watch", *words, "--headless")
    assert (done.code, complaint in done.complaint) == (code, True), done.err


@pytest.mark.integration
def test_what_is_about_requests_is_refused(servetop: Servetop, simulator: str, tmp_path: Path) -> None:
    recording = str(tmp_path / "watch.servetop")
    assert servetop("watch", simulator, "--headless", "--duration", "1s", "--record", recording).code == 0
    assert servetop("summary", recording, "--story").code == 0
    for words in (("--price", "2/h"), ("--metric-percentiles", "75")):
        done = servetop("summary", recording, *words)
        assert (done.code, "a watch" in done.complaint) == (2, True), done.err
    for command in (
        ("report", recording, "--price", "2/h"), ("check", recording), ("compare", recording),
        ("export", recording, "--format", "vllm"), ("--config", recording),
    ):  # fmt: skip
        done = servetop(*command)
        assert (done.code, "watch" in done.complaint) == (2, True), done.err
