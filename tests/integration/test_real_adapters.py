"""servetop starts, loads, reads and stops the real servers: what it records is what they count, and nothing is left."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from servetop.recordings.read.reader import RecordingReader
from tests.harness import RAN, Servetop, wait_for
from tests.integration.harness import counters, home_of, kill_engine, loaded, noticed_in_time, only, peak_is_possible
from tests.integration.real_engines import RAY_ENGINE, RealEngine

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


@dataclass(frozen=True)
class Started:
    """How servetop starts a real server, and what it must find out."""

    engine: str
    installed: str
    command: str
    """Below the folder of the installation."""
    model: str
    after: tuple[str, ...] = ()
    """What stands after `--`."""
    max_num_seqs: int | None = None
    limit: int | None = None
    """The batch size that the engine reports."""
    blocks: int | None = None
    counts_tokens: bool = True
    """Its metrics have token counters, which must be the client's."""
    late: bool = False
    """Its last counters may be a second old when it is stopped."""
    exact: bool = True
    """Completions have the requested length."""
    prompts: int = 24
    """Enough that the load lasts longer than the interval between two scrapes."""

    def words(self, home: Path) -> list[str]:
        limit = () if self.max_num_seqs is None else ("--max-num-seqs", str(self.max_num_seqs))
        named = ("--engine-command", str(home / self.command), "--model", str(home / self.model))
        return ["--engine", self.engine, *named, *limit]


CB = ("--device", "cpu", "--cb-block-size", "32", "--cb-num-blocks", "64", "--cb-max-batch-tokens", "256")
CPU = (
    "--accelerator",
    "cpu",
    "--num-cpus",
    "4",
    "--dtype",
    "float32",
    "--max-model-len",
    "1024",
    "--engine-kwargs",
    RAY_ENGINE,
)
STARTED = {
    each.engine: each
    for each in (
        Started(
            "llama.cpp", "llama.cpp", "llama-server", "tiny.gguf", ("-c", "3072", "-t", "1"), 3, 3, 3072, prompts=1200
        ),
        Started(
            "triton-tensorrt-llm",
            "triton",
            "tritonserver",
            "models",
            limit=8,
            blocks=64,
            counts_tokens=False,
            prompts=120,
        ),
        Started(
            "transformers", "transformers", "bin/transformers", "tiny-llama-w", CB, counts_tokens=False, exact=False
        ),
        Started("transformers-pipeline", "transformers", "bin/python", "tiny-llama-w", (), 4, 4),
        Started("ray-serve-llm", "ray-serve-llm", "bin/python", "tiny-llama", CPU, 8, 8, 63, late=True),
    )
}


@pytest.fixture(params=STARTED)
def case(request: pytest.FixtureRequest) -> Started:
    return STARTED[request.param]


def processes_of(home: Path) -> list[str]:
    """Those that run what is installed there, servetop's own apart."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if any(str(home) in word for word in words) and "servetop" not in words:
            found.append(f"{process.pid} {' '.join(words)[:120]}")
    return found


def test_a_started_servers_numbers_are_its_own_and_nothing_is_left(
    case: Started, servetop: Servetop, tmp_path: Path
) -> None:
    home, recording = home_of(case.installed), tmp_path / "run.servetop"
    before = processes_of(home)
    load = ("--max-concurrency", "6", "--num-prompts", str(case.prompts), "--input-len", "12", "--output-len", "40")
    done = servetop(*case.words(home), *load, "--json", "--record", str(recording), "--", *case.after, timeout=400)
    assert done.code in RAN, done.err
    summary, facts = done.summary, done.summary["engine"]
    assert (summary["completed"], summary["failed"], summary["truncated"]) == (case.prompts, 0, 0)
    assert (facts["name"], facts["max_num_seqs"], facts["kv_blocks_total"]) == (case.engine, case.limit, case.blocks)
    assert summary["total_output_tokens"] <= case.prompts * 40
    if case.exact:
        assert summary["total_output_tokens"] == case.prompts * 40
    if case.late:
        assert 0 < summary["server"]["generation_tokens"] <= summary["total_output_tokens"]
    elif case.counts_tokens:
        assert summary["server"]["generation_tokens"] == summary["total_output_tokens"]
        assert summary["server"]["prompt_tokens"] == summary["total_input_tokens"]
    if case.limit is not None:
        assert peak_is_possible(summary["server"], "max_running", most=case.limit)
    assert processes_of(home) == before
    notes = [note for note in RecordingReader.open(recording).poll().notes if note.severity != "info"]
    on_a_busy_machine = ("no response within", "the sender left the real-time class")
    assert [note.text for note in notes if not any(each in note.text for each in on_a_busy_machine)] == []


def test_a_killed_server_is_noticed_within_two_seconds_and_nothing_is_left(
    case: Started, servetop: Servetop, tmp_path: Path
) -> None:
    home, recording = home_of(case.installed), tmp_path / "killed.servetop"
    before = processes_of(home)
    load = ("--max-concurrency", "4", "--duration", "120", "--input-len", "12", "--output-len", "40")
    words = [*case.words(home), *load, "--headless", "--record", str(recording), "--", *case.after]
    with loaded(servetop, words, recording, seconds=240) as (process, reader):
        killed_at = kill_engine(reader)
        process.communicate(timeout=60)
    assert process.returncode == 3
    assert noticed_in_time(recording, killed_at)
    wait_for(lambda: processes_of(home) == before, seconds=15, what="the end of the engine's processes")


@only("llama.cpp")
@pytest.mark.parametrize("endpoint", ["completions", "chat", "generate"])
def test_every_wire_of_llama_server_counts_as_it_does_itself(
    server: RealEngine, servetop: Servetop, endpoint: str
) -> None:
    load = ("--max-concurrency", "6", "--num-prompts", "60", "--input-len", "12", "--output-len", "30")
    before = counters(server.url)
    done = servetop("--url", server.url, "--endpoint", endpoint, *load, "--json")
    after = counters(server.url)
    assert done.code in RAN, done.err
    assert (done.summary["engine"]["name"], done.summary["completed"], done.summary["failed"]) == ("llama.cpp", 60, 0)
    counted = {name: after[name] - before[name] for name in after}
    assert done.summary["total_output_tokens"] == 60 * 30 == counted["llamacpp:tokens_predicted_total"]
    assert done.summary["total_input_tokens"] == (
        counted["llamacpp:prompt_tokens_total"] + counted["llamacpp:prompt_tokens_cached_total"]
    )


@only("triton")
def test_an_attached_runs_requests_are_those_that_triton_counts(
    server: RealEngine, servetop: Servetop, tmp_path: Path
) -> None:
    where = (server.metrics or "").removesuffix("/metrics")
    while not (before := counters(where)["nv_inference_request_success"]):
        pass  # the request that showed that the server is ready is counted a little after its answer
    load = ("--max-concurrency", "12", "--num-prompts", "40", "--input-len", "30", "--output-len", "40")
    recording = tmp_path / "run.servetop"
    done = servetop("--url", server.url, "--metrics-url", where, *load, "--json", "--record", str(recording))
    assert done.code in RAN, done.err
    assert (done.summary["engine"]["name"], done.summary["completed"]) == ("triton-tensorrt-llm", 40)
    assert done.summary["total_output_tokens"] == 40 * 40
    assert counters(where)["nv_inference_request_success"] - before == 40
    assert peak_is_possible(done.summary["server"], "max_running", most=8)
    rows = sqlite3.connect(recording).execute("SELECT kv_usage, kv_blocks_used, kv_blocks_total FROM engine_sample")
    assert all(used == pytest.approx(usage * total) for usage, used, total in rows)


@only("transformers")
@pytest.mark.parametrize("endpoint", ["completions", "chat"])
def test_an_attached_transformers_serve_is_recognised_and_refuses_nothing(
    server: RealEngine, servetop: Servetop, endpoint: str
) -> None:
    load = ("--max-concurrency", "3", "--num-prompts", "9", "--input-len", "12", "--output-len", "20")
    done = servetop("--url", server.url, "--model", server.model, "--endpoint", endpoint, *load, "--json")
    assert done.code in RAN, done.err
    assert (done.summary["engine"]["name"], done.summary["completed"], done.summary["failed"]) == ("transformers", 9, 0)


def test_a_sweep_over_slots_restarts_llama_server_and_counts_each_token_once(
    servetop: Servetop, tmp_path: Path
) -> None:
    case, grid = STARTED["llama.cpp"], tmp_path / "grid.toml"
    grid.write_text(
        "max_num_seqs = [1, 4]\nrequest_rate = ['inf']\nmax_concurrency = [6]\nnum_prompts = 24\n"
        "[workload]\ninput_len = 12\noutput_len = 60\n"
    )
    home = home_of(case.installed)
    before = processes_of(home)
    words = case.words(home)[:-2]  # without --max-num-seqs: the grid has it
    done = servetop("sweep", str(grid), *words, "--json", "--", "-c", "4096", "-t", "1")
    assert done.code in RAN, done.err
    assert [(stage["max_num_seqs"], stage["completed"]) for stage in done.summary["stages"]] == [(1, 24), (4, 24)]
    assert done.summary["server"]["generation_tokens"] == 2 * 24 * 60
    assert processes_of(home) == before


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--model", "version.txt"), "not a model that it can load: gguf_init_from_reader: invalid magic characters"),
        (("--model", "nope.gguf"), "there is no model file"),
        (("--model", "tiny.gguf", "--", "--nope"), "invalid argument: --nope"),
    ],
)
def test_a_llama_server_that_cannot_start_says_why_in_one_line(
    servetop: Servetop, words: tuple[str, ...], complaint: str
) -> None:
    home = home_of("llama.cpp")
    started = ("--engine", "llama.cpp", "--engine-command", str(home / "llama-server"), "--num-prompts", "1")
    done = servetop(*started, "--headless", words[0], str(home / words[1]), *words[2:])
    assert done.code in (2, 3)
    assert complaint in done.complaint


def test_a_llama_server_without_metrics_says_which_option_turns_them_on(
    servetop: Servetop, tmp_path: Path, bare_llama_server: str
) -> None:
    recording = tmp_path / "run.servetop"
    load = ("--max-concurrency", "2", "--num-prompts", "30", "--output-len", "60", "--record", str(recording))
    done = servetop("--url", bare_llama_server, *load, "--json")
    assert done.code in RAN, done.err
    assert done.summary["server"]["generation_tokens"] is None
    texts = [note.text for note in RecordingReader.open(recording).poll().notes]
    assert any("metrics are off: start llama-server with --metrics" in text for text in texts)
    assert not any("back" in text for text in texts)
