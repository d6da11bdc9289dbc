"""The recordings shipped with servetop: their names, and what they show."""

import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from servetop.core.errors import RecordingError
from servetop.recordings.library.catalog import list_recordings, resolve
from servetop.recordings.library.samples import is_sample_name, sample_names, sample_path
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.verify.verdict import VerifyVerdict
from servetop.recordings.verify.verify import verify


@pytest.mark.parametrize("name", sample_names())
def test_a_sample_is_a_sound_recording_of_an_overload(name: str) -> None:
    path = resolve(name)
    assert path.stat().st_size < 2e6
    assert verify(path).verdict is VerifyVerdict.SOUND
    with closing(RecordingReader.open(path)) as reader:
        assert max(sample.preemptions_total or 0.0 for sample in reader.engine_samples()) > 0


def test_the_h200_sample_used_its_gpu() -> None:
    with closing(RecordingReader.open(sample_path("sample:h200"))) as reader:
        assert max(sample.utilisation or 0.0 for sample in reader.gpu_samples()) > 0.9


def test_sample_names_are_reserved_and_not_listed(tmp_path: Path) -> None:
    for name in ("sample", "sample.servetop"):
        (tmp_path / name).touch()
    assert resolve("sample", folder=tmp_path) == sample_path("sample:overload")
    assert resolve("sample.servetop", folder=tmp_path) == tmp_path / "sample.servetop"
    assert resolve(str(tmp_path / "sample")) == tmp_path / "sample"
    assert [info.path.name for info in list_recordings(tmp_path)] == ["sample.servetop"]
    assert not is_sample_name("samples")


def test_an_unknown_sample_is_rejected_with_the_known_names(tmp_path: Path) -> None:
    assert sample_names() == ["sample:h200", "sample:overload"]
    with pytest.raises(RecordingError, match="unknown sample sample:a100: servetop has sample:h200, sample:overload"):
        resolve("sample:a100", folder=tmp_path)


def test_the_queue_of_the_sample_grows_after_its_kv_cache_is_full_and_drains() -> None:
    with closing(RecordingReader.open(sample_path("sample"))) as reader:
        assert reader.header.host["name"] == "sample"
        samples = reader.engine_samples()
        end = reader.end
    full = next(each.scrape_end for each in samples if (each.kv_usage or 0.0) > 0.95)
    preempted = next(each.scrape_end for each in samples if (each.preemptions_total or 0.0) > 0)
    longest = max(samples, key=lambda each: each.waiting or 0.0)
    assert 15.0 < min(full, preempted) < longest.scrape_end
    assert (longest.waiting or 0.0) > 50
    assert (samples[0].kv_usage, samples[-1].waiting) == (0.0, 0.0)
    assert end is not None
    assert end.exit_code == 0


def test_closing_the_terminal_removes_the_unpacked_sample(tmp_path: Path) -> None:
    code = (
        "import sys; from servetop.recordings.library.samples import sample_path; "
        "print(sample_path('sample'), flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        restore_signals=True,
    ) as process:
        assert process.stdout is not None
        unpacked = Path(process.stdout.readline().strip())
        assert unpacked.is_relative_to(tmp_path)
        assert unpacked.is_file()
        process.send_signal(signal.SIGHUP)
        assert process.wait(timeout=60) == -signal.SIGHUP
    assert list(tmp_path.iterdir()) == []
