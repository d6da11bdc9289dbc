"""Workloads from the command line, against the simulator: the recording holds the requested load."""

import contextlib
import json
from pathlib import Path

import pytest

from servetop.cli.configuration.sweep_file import read_sweep
from servetop.cli.configuration.sweep_plan import sweep_config
from servetop.core.events import RequestRecord
from servetop.recordings.read.reader import RecordingReader
from tests.harness import RAN, Servetop

pytestmark = pytest.mark.integration

TRACE = "arrival_s,input,output\n0,10,3\n0.5,20,4\n0.5,bad,4\n1.5,5000,5\n"


def requests(servetop: Servetop) -> list[RequestRecord]:
    (file,) = servetop.folder.glob("*.servetop")
    with contextlib.closing(RecordingReader.open(file)) as reader:
        return sorted(reader.requests(0.0, 1e9), key=lambda each: each.due)


def test_a_trace_is_replayed_with_its_times_and_lengths(servetop: Servetop, tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text(TRACE)
    words = ("--json", "--dataset-name", "trace", "--dataset-path", str(trace), "--time-scale", "0.5")
    refused = servetop(*words)
    assert refused.code == 2
    assert "line 4, column 'input': expected a whole number of tokens, 1 or more, found 'bad':" in refused.complaint
    assert refused.complaint.endswith("fix it, or add --skip-bad-rows")
    too_long = servetop(*words, "--skip-bad-rows")
    assert too_long.code == 2
    assert "line 5 of the trace needs 5,000 + 5 tokens, but the model's context has 4,096" in too_long.err
    for file in servetop.folder.glob("*"):
        file.unlink()
    done = servetop(*words, "--skip-bad-rows", "--clip-lengths")
    assert done.code in RAN, done.err
    found = requests(servetop)
    assert [(each.prompt_tokens, each.output_tokens) for each in found] == [(10, 3), (20, 4), (4091, 5)]
    assert [each.due - found[0].due for each in found] == pytest.approx([0.0, 0.25, 0.75])
    assert "1 bad row of the dataset was skipped; the first: " in done.err
    assert "1 request was clipped to the model's context" in done.err


def test_warm_up_requests_are_recorded_but_excluded_from_totals(servetop: Servetop) -> None:
    done = servetop(
        "--json", "--num-warmups", "3", "--arrivals", "burst", "--request-rate", "4", "--num-prompts", "8",
        "--input-len", "9", "--output-len", "2", "--header", "X-Secret-Token: hf_abcdefghijkl",
    )  # fmt: skip
    assert done.code in RAN, done.err
    assert (done.summary["num_prompts"], done.summary["completed"]) == (8, 8)
    assert [stage["label"] for stage in done.summary["stages"]] == ["4 req/s"]
    found = requests(servetop)
    assert [each.stage for each in found] == [0] * 3 + [1] * 8
    assert [each.due - found[3].due for each in found[3:]] == pytest.approx([0.0] * 4 + [1.0] * 4)
    assert b"hf_abcdefghijkl" not in next(servetop.folder.glob("*.servetop")).read_bytes()


def test_exact_lengths_are_counted_by_the_engine(servetop: Servetop) -> None:
    done = servetop(
        "--json", "--dataset-name", "sonnet", "--exact-lengths", "--lengths", "uniform:ratio=0.5",
        "--input-len", "100", "--output-len", "2", "--request-rate", "20", "--num-prompts", "10",
    )  # fmt: skip
    assert done.code in RAN, done.err
    lengths = [each.prompt_tokens for each in requests(servetop)]
    assert min(lengths) >= 50
    assert max(lengths) <= 150
    assert len(set(lengths)) > 5


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--arrivals", "bursts"), "--arrivals: unknown 'bursts': did you mean burst?"),
        (("--lengths", "normal:sd=3"), "--lengths: unknown 'sd'"),
        (("--dataset-name", "csv"), "--dataset-name csv reads a file: give --dataset-path"),
        (("--header", "no colon"), "give NAME:VALUE"),
        (("--header", "Host: x"), "--header Host: servetop sets this one itself"),
        (("--header", "A: b\r\nC: d"), "give NAME:VALUE"),
        (("--ramp-up-start-rps", "3"), "give --ramp-up-start-rps and --ramp-up-end-rps"),
        (("--ramp-up-start-rps", "3", "--ramp-up-end-rps", "0"), "is not a request rate"),
        (
            ("--ramp-up-start-rps", "3", "--ramp-up-end-rps", "9", "--ramp-up-strategy", "steep"),
            "invalid --ramp-up-strategy steep: use linear or exponential",
        ),
        (("--ramp", "4-inf:3s", "--max-concurrency", "3"), "give both in requests/s"),
        (("--think-time", "2", "--request-rate", "4"), "--think-time is for closed loops"),
        (("--num-prefixes", "0"), "--num-prefixes 0: give 1 or more"),
        (("--exact-lengths",), "other prompts are exact without it"),
    ],
)
def test_an_invalid_workload_is_an_error_of_one_line(
    servetop: Servetop, words: tuple[str, ...], complaint: str
) -> None:
    refused = servetop("--headless", *words)
    assert refused.code == 2
    assert complaint in refused.complaint


def test_a_sweep_file_names_workloads_too_and_takes_the_arrivals_of_its_study(tmp_path: Path) -> None:
    file, trace = tmp_path / "grid.toml", tmp_path / "trace.csv"
    trace.write_text(TRACE.replace("bad", "7"))
    file.write_text('request_rate = [8]\nduration = 5\nnum_warmups = 4\n[sim]\narrivals = "burst"')
    config = sweep_config(read_sweep(str(file)))
    assert config.workload.arrivals == "burst"
    assert [(stage.warmup, stage.num_prompts) for stage in config.stages] == [(True, 4), (False, None)]
    data = f"[workload]\ndataset = 'trace'\ndataset_path = {json.dumps(str(trace))}"
    file.write_text(f"max_concurrency = [2, 4]\n{data}")
    config = sweep_config(read_sweep(str(file)))
    assert (config.workload.arrivals, config.workload.trace_rate) == ("trace", 2.0)
    assert [(stage.request_rate, stage.num_prompts) for stage in config.stages] == [(2.0, 4), (2.0, 4)]
