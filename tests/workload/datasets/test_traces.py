"""Traces: formats, bad rows, jitter, and replay at any rate."""

import gzip
import itertools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.core.config import WorkloadConfig
from servetop.core.errors import UsageError
from servetop.core.interfaces.dialect import Prompt
from servetop.workload.build import arrivals_of, prompts_for
from servetop.workload.datasets.catalogue import trace_of
from servetop.workload.datasets.rows import DatasetRow, SkippedRows
from servetop.workload.datasets.traces import RequestTrace, measure
from servetop.workload.stages.stage_draws import StageDraws
from servetop.workload.validation import check_fits, resolve_workload

PLAIN = "arrival_s,input,output\n0,10,5\n0.5,20,6\n2,30,7\n"
AZURE = (
    "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109"
)
BURSTGPT = (
    "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,Conversation log\n"
)
BURSTGPT_2 = (
    "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    "5.5,a-b,1.2,GPT-4,472,18,490,Conversation log\n"
)
VIDUR = "arrived_at,num_prefill_tokens,num_decode_tokens\n0.25,100,50\n1.25,200,60\n"
UNTIMED = "num_prefill_tokens,num_decode_tokens,pd_ratio\n100,50,2.0\n"
MOONCAKE = "".join(
    json.dumps({"timestamp": at, "input_length": length, "output_length": 3, "hash_ids": ids}) + "\n"
    for at, length, ids in ((0, 1100, [0, 1, 2]), (3000, 600, [0, 5]), (3000, 1024, [0, 1]), (6000, 40, [9]))
)

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(text: str, name: str = "trace.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return path

    return written


def workload(path: Path, name: str = "trace", **fields: Any) -> WorkloadConfig:
    return WorkloadConfig(dataset=name, dataset_path=str(path), **fields)


def trace(path: Path, name: str = "trace", **fields: Any) -> RequestTrace:
    found = trace_of(workload(path, name, **fields), seed=7)
    assert found is not None
    return found


def shape(rows: Sequence[DatasetRow]) -> list[tuple[float | None, int | None, int | None]]:
    return [(row.at, row.input_tokens, row.output_tokens) for row in rows]


def first(prompts: Any, count: int) -> list[Prompt]:
    return list(itertools.islice(prompts.prompts(), count))


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (PLAIN, [(0.0, 10, 5), (0.5, 20, 6), (2.0, 30, 7)]),
        (BURSTGPT, [(0.0, 472, 18)]),
        (BURSTGPT_2, [(0.0, 472, 18)]),
        (VIDUR, [(0.0, 100, 50), (1.0, 200, 60)]),
        (UNTIMED, [(None, 100, 50)]),
        (PLAIN.replace("10", "10.0"), [(0.0, 10, 5), (0.5, 20, 6), (2.0, 30, 7)]),
    ],
)
def test_the_header_selects_the_format_of_a_table(write: Write, text: str, rows: list[tuple[float, int, int]]) -> None:
    assert shape(list(trace(write(text), jitter=0.0).rows())) == rows


def test_azures_times_have_seven_digits(write: Write) -> None:
    rows = list(trace(write(AZURE), "azure").rows())
    assert [(row.input_tokens, row.output_tokens) for row in rows] == [(374, 44), (396, 109)]
    assert rows[1].at == pytest.approx(4.314579, abs=1e-5)


def test_the_shipped_azure_traces_are_complete() -> None:
    facts = {name: measure(trace(Path(), name)) for name in ("azure-conv", "azure-code")}
    assert {name: each.rows for name, each in facts.items()} == {"azure-conv": 19_366, "azure-code": 8_819}
    assert facts["azure-conv"].rate == pytest.approx(5.53, abs=0.01)
    assert facts["azure-code"].rate == pytest.approx(2.57, abs=0.01)


def test_a_gzipped_trace_is_read_as_it_is(write: Write) -> None:
    assert len(list(trace(write(PLAIN, "trace.csv.gz")).rows())) == 3


def test_mooncakes_grid_of_three_seconds_is_spread(write: Write) -> None:
    path = write(MOONCAKE, "m.jsonl")
    times = [row.at or 0.0 for row in trace(path, "mooncake").rows()]
    assert times == sorted(times)
    assert [int(at // 3) for at in times] == [0, 1, 1, 2]
    assert len({at % 3 for at in times}) == 4
    assert times == [row.at for row in trace(path, "mooncake").rows()]
    assert [row.at for row in trace(path, "mooncake", jitter=0.0).rows()] == [0, 3, 3, 6]


def test_prompts_of_mooncake_share_the_blocks_that_their_hashes_name(write: Write) -> None:
    path = write(MOONCAKE, "m.jsonl")
    prompts = first(prompts_for(workload(path, "mooncake", jitter=0.0), (7, 0)), 4)
    ids = [prompt.token_ids or () for prompt in prompts]
    assert [len(each) for each in ids] == [1100, 600, 1024, 40]
    assert ids[0][:512] == ids[1][:512] == ids[2][:512]
    assert ids[0][512:1024] == ids[2][512:1024]
    assert ids[0][512:600] != ids[1][512:600]
    assert ids[3] != ids[0][:40]


def test_a_timed_trace_has_seconds_and_blocks_of_sixteen(write: Write) -> None:
    line = '{"timestamp": %s, "input_length": 32, "output_length": 3, "hash_ids": [%d, 7]}\n'
    path = write(line % (0.5, 1) + line % (1.75, 2), "t.jsonl")
    assert [row.at for row in trace(path, "timed_trace").rows()] == [0.0, 1.25]
    one, two = (prompt.token_ids or () for prompt in first(prompts_for(workload(path, "timed_trace"), (1, 0)), 2))
    assert one[16:] == two[16:]
    assert one[:16] != two[:16]


def test_a_replay_keeps_the_times_and_restarts_a_mean_gap_after_the_end(write: Write) -> None:
    resolved, replay = resolve_workload(workload(write(PLAIN)))
    assert replay is not None
    assert (resolved.arrivals, replay.rate, replay.requests) == ("trace", 1.0, 3)
    times = arrivals_of(resolved)(StageDraws(arrivals=(1,)))(1.0).due_times()
    assert list(itertools.islice(times, 7)) == [0.0, 0.5, 2.0, 3.0, 3.5, 5.0, 6.0]
    lengths = [(each.input_tokens, each.output_tokens) for each in first(prompts_for(resolved, (1, 0)), 4)]
    assert lengths == [(10, 5), (20, 6), (30, 7), (10, 5)]


def test_another_rate_stretches_the_times_and_continues_at_the_current_row(write: Write) -> None:
    resolved, _ = resolve_workload(workload(write(PLAIN)))
    arrivals = arrivals_of(resolved)(StageDraws(arrivals=(1,)))
    twice_as_fast = arrivals(2.0).due_times()
    assert [next(twice_as_fast), next(twice_as_fast)] == [0.0, 0.25]
    native = arrivals(1.0).due_times()  # the second row was looked at, not used
    assert [next(native), next(native), next(native)] == [0.0, 1.5, 2.5]


def test_a_time_scale_makes_the_nominal_rate(write: Write) -> None:
    _, replay = resolve_workload(workload(write(PLAIN), time_scale=0.25))
    assert replay is not None
    assert replay.rate == 4.0


def test_other_arrivals_use_only_the_lengths_of_a_trace(write: Write) -> None:
    resolved, replay = resolve_workload(workload(write(PLAIN), arrivals="poisson"))
    assert (resolved.arrivals, replay) == ("poisson", None)
    lengths = prompts_for(workload(write(PLAIN), lengths="fixed:input=3,output=2"), (1, 0))
    assert [(each.input_tokens, each.output_tokens) for each in first(lengths, 2)] == [(3, 2), (3, 2)]


BAD_ROWS = [
    ("x,20,6", "column 'arrival_s': expected a time in seconds, 0 or more, found 'x'"),
    ("-1,20,6", "column 'arrival_s': expected a time in seconds, 0 or more, found '-1'"),
    ("inf,20,6", "column 'arrival_s': expected a time"),
    ("0.5,0,6", "column 'input': expected a whole number of tokens, 1 or more, found '0'"),
    ("0.5,20,-3", "column 'output': expected a whole number of tokens"),
    ("0.5,2.5,3", "column 'input': expected a whole number of tokens"),
    ("0.5,99999999999,3", "column 'input': expected a whole number of tokens"),
    ("0.5,20", "column 'output': expected a value, found None"),
    ("-0.5,20,3", "column 'arrival_s'"),
]


@pytest.mark.parametrize(("line", "message"), BAD_ROWS)
def test_a_bad_row_is_rejected_with_line_and_column_or_skipped_and_counted(
    write: Write, line: str, message: str
) -> None:
    path = write(PLAIN.replace("0.5,20,6", line))
    with pytest.raises(UsageError) as caught:
        resolve_workload(workload(path))
    assert f"line 3, {message}" in str(caught.value)
    assert "\n" not in str(caught.value)
    resolve_workload(workload(path, skip_bad_rows=True))
    skipped = SkippedRows()
    assert len(list(trace(path).rows(skipped))) == 2
    assert (skipped.skipped, message in skipped.first_skipped) == (1, True)
    assert skipped.texts() == [f"1 bad row of the dataset was skipped; the first: {skipped.first_skipped}"]
    assert skipped.texts() == []


def test_a_time_before_the_previous_row_is_a_bad_row(write: Write) -> None:
    with pytest.raises(UsageError, match="line 4, column 'arrival_s': expected a time not before the row above"):
        resolve_workload(workload(write(PLAIN.replace("2,30", "0.4,30"))))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("trace", "", "is empty"),
        ("trace", "a,b\n1,2\n", "line 1: expected the columns TIMESTAMP,ContextTokens"),
        ("burstgpt", PLAIN, "line 1: expected the columns Timestamp,Request tokens,Response tokens, found arrival_s"),
        ("trace", "arrival_s,input,output\n", "has no usable rows"),
        ("trace", MOONCAKE, "give --dataset-name mooncake"),
        ("mooncake", '{"id": 1}\n', "line 1, no column 'input_length': it has id: fix it, or add --skip-bad-rows"),
        ("mooncake", "[1]\n", "line 1, expected an object with the columns of mooncake, found '1'"),
        ("mooncake", "not json\n", "line 1, not a complete JSON value: 'not json'"),
        ("mooncake", MOONCAKE.replace("[0, 5]", '"05"'), "column 'hash_ids': expected a list of whole numbers"),
        ("azure", AZURE.replace("2023", "XXXX"), "expected a date and time"),
    ],
)
def test_a_file_in_another_format_is_rejected_in_one_line(write: Write, name: str, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        resolve_workload(workload(write(text), name))
    assert "\n" not in str(caught.value)


def test_a_truncated_gzip_and_a_missing_file_are_rejected(write: Write, tmp_path: Path) -> None:
    path = write(PLAIN + "2,1,1\n" * 500, "trace.csv.gz")
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(UsageError, match="is not a complete gzip file"):
        resolve_workload(workload(path))
    with pytest.raises(UsageError, match="check --dataset-path"):
        resolve_workload(workload(tmp_path / "nowhere.csv"))


@given(st.text(), st.sampled_from(["trace", "mooncake", "timed_trace", "azure", "custom", "sharegpt", "csv"]))
def test_any_file_content_gives_rows_or_a_usage_error(
    tmp_path_factory: pytest.TempPathFactory, text: str, name: str
) -> None:
    path = tmp_path_factory.mktemp("any") / "file"
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    for skip in (False, True):
        complaint = ""
        try:
            resolve_workload(workload(path, name, skip_bad_rows=skip))
        except UsageError as error:
            complaint = str(error)
        assert "\n" not in complaint


cells = st.one_of(st.integers(-5, 10**12).map(str), st.floats().map(str), st.text(max_size=5), st.just("3"))


@given(st.lists(st.tuples(cells, cells, cells), max_size=20))
def test_rows_that_parse_are_in_order_and_have_tokens(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, str]]
) -> None:
    path = tmp_path_factory.mktemp("any") / "file.csv"
    text = "".join(",".join(row) + "\n" for row in rows)
    path.write_text("arrival_s,input,output\n" + text, encoding="utf-8", errors="surrogatepass")
    found = list(trace(path).rows(SkippedRows()))
    times = [row.at or 0.0 for row in found]
    assert times == sorted(times)
    assert all((row.input_tokens or 0) >= 1 <= (row.output_tokens or 0) for row in found)


@given(st.lists(st.floats(0, 1000), min_size=1, max_size=60), st.floats(0.1, 100), st.integers(0, 99))
def test_jitter_moves_arrivals_later_within_its_bound_and_loses_none(
    tmp_path_factory: pytest.TempPathFactory, times: list[float], jitter: float, seed: int
) -> None:
    path = tmp_path_factory.mktemp("any") / "file.csv"
    ordered = sorted(times)
    path.write_text("arrival_s,input,output\n" + "".join(f"{at!r},{n + 1},1\n" for n, at in enumerate(ordered)))
    found = list(trace(path, jitter=jitter).rows())
    moved = [(row.at or 0.0) - (ordered[(row.input_tokens or 0) - 1] - ordered[0]) for row in found]
    assert sorted(row.input_tokens or 0 for row in found) == list(range(1, len(ordered) + 1))
    assert np.all(np.diff([row.at or 0.0 for row in found]) >= 0)
    assert all(-1e-9 <= each <= jitter + 1e-9 for each in moved)


def test_requests_beyond_the_context_are_rejected_or_clipped(write: Write) -> None:
    config = workload(write(PLAIN))
    check_fits(config, 37)
    with pytest.raises(UsageError, match=r"line 4 of the trace needs 30 \+ 7 tokens, but the model.s context has 36"):
        check_fits(config, 36)
    check_fits(workload(write(PLAIN), clip_lengths=True), 36)
    prompts = first(prompts_for(workload(write(PLAIN), clip_lengths=True), (1, 0), max_model_len=20), 3)
    assert [(each.input_tokens, each.output_tokens, each.clipped) for each in prompts] == [
        (10, 5, False), (14, 6, True), (13, 7, True),
    ]  # fmt: skip
    assert [len(each.token_ids or ()) for each in prompts] == [10, 14, 13]
    with pytest.raises(UsageError, match=r"each request needs 100 \+ 50 tokens"):
        check_fits(WorkloadConfig(input_len=90, output_len=50, prefix_len=10), 149)
