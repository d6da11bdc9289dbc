"""A written trace is read as the load that it was written from."""

from pathlib import Path

import pytest

from servetop.core.config import WorkloadConfig
from servetop.core.errors import UsageError
from servetop.workload.datasets.catalogue import trace_of
from servetop.workload.prompts.dataset_options import likely_names
from servetop.workload.prompts.preview import preview
from servetop.workload.shape.recorded_load import RecordedLoad, ShapedRequest
from servetop.workload.shape.shape_file import shape_lines
from servetop.workload.shape.shape_report import shared_prefix

BIG = 1 << 50


def request(at: float, tokens: int, blocks: tuple[int, ...], session: int | None = None) -> ShapedRequest:
    return ShapedRequest(at=at, input_tokens=tokens, output_tokens=7, blocks=blocks, session=session)


LOAD = RecordedLoad(
    block_tokens=32,
    requests=[
        request(0.0, 64, (BIG + 1, BIG + 2), BIG + 50),
        request(0.2505, 70, (BIG + 1, BIG + 2, BIG + 3), BIG + 50),
        request(4.0, 20, (BIG + 4,)),
    ],
)


def written(folder: Path, load: RecordedLoad = LOAD, *, renumber: bool = True) -> WorkloadConfig:
    path = folder / "shape.jsonl"
    path.write_text("".join(shape_lines(load, renumber=renumber)))
    return WorkloadConfig(dataset="trace", dataset_path=str(path))


def test_the_trace_has_times_lengths_blocks_and_sessions(tmp_path: Path) -> None:
    trace = trace_of(written(tmp_path), seed=1)
    assert trace is not None
    assert (trace.file_format.block_tokens, trace.jitter, trace.timed) == (32, 0.0, True)
    rows = list(trace.rows())
    assert [row.at for row in rows] == [0.0, 0.2505, 4.0]
    assert [(row.input_tokens, row.output_tokens) for row in rows] == [(64, 7), (70, 7), (20, 7)]
    assert [(row.blocks, row.session) for row in rows] == [((0, 1), 0), ((0, 1, 2), 0), ((3,), None)]


def test_identities_stay_hashes_where_traces_are_to_be_compared(tmp_path: Path) -> None:
    trace = trace_of(written(tmp_path, renumber=False), seed=1)
    assert trace is not None
    assert next(iter(trace.rows())).blocks == (BIG + 1, BIG + 2)


@pytest.mark.parametrize("count", [1, 3])
def test_its_preview_finds_the_shared_prefixes_of_the_report(count: int, tmp_path: Path) -> None:
    load = RecordedLoad(block_tokens=32, requests=LOAD.requests[:count])
    found = preview(written(tmp_path, load), examples=0)
    assert (found.rows, found.remarks, found.mismatched_blocks) == (count, (), 0)
    assert found.shared_prefixes == pytest.approx(shared_prefix(load.requests, 32))
    assert likely_names(tmp_path / "shape.jsonl") == ("trace",)


def test_rows_of_another_block_size_are_refused(tmp_path: Path) -> None:
    config = written(tmp_path)
    path = Path(config.dataset_path)
    path.write_text(path.read_text().replace('"block_size": 32', '"block_size": 16', 1))
    trace = trace_of(config, seed=1)
    assert trace is not None
    with pytest.raises(UsageError, match=r"line 2, column .block_size.: expected 16, as in the first row, found 32"):
        list(trace.rows())


def test_other_json_needs_the_unit_of_its_times(tmp_path: Path) -> None:
    config = written(tmp_path)
    path = Path(config.dataset_path)
    path.write_text(path.read_text().replace('"block_size": 32', '"block_size": 0'))
    with pytest.raises(UsageError, match="give --dataset-name mooncake"):
        trace_of(config, seed=1)
