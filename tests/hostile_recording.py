"""A recording with hostile text in every text field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from servetop.core.clock import ClockAnchor
from servetop.core.config import EngineConfig, RunConfig
from servetop.core.events import LogLine, Note, RunEnd, Severity, StageChange
from servetop.core.interfaces.run_source import EngineFacts, RunHeader
from servetop.core.interfaces.series_scrape import SeriesScrape, pack_numbers
from servetop.core.tick import ClientTick, Tick
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction


def write_hostile_recording(path: Path, text: str) -> None:
    """Names, versions, labels, notes, log lines and the reason of its end are all that text."""
    engine = EngineFacts(name=text, title=text, version=text, model=text, replica_urls=(f"http://{text}", "http://b"))
    config = RunConfig(engine=EngineConfig(name="vllm", model=text), label=text, metadata={text: text})
    header = RunHeader(
        config=config, anchor=ClockAnchor(origin_ns=0, wall_epoch_s=1_700_000_000.0), engine=engine,
        versions={"servetop": text}, host={"name": text}, manifest=_manifest(text),
    )  # fmt: skip
    recorder = Recorder.create(path, header)
    stages = [
        StageChange(
            at=float(number), index=number, label=text, request_rate=1.0 + number, max_concurrency=None,
            max_num_seqs=8 * (number + 1),
        )
        for number in range(3)
    ]  # fmt: skip
    recorder.commit(
        TickTransaction(
            tick=Tick(client=ClientTick(index=0)),
            stages=stages,
            notes=[Note(at=0.1, severity=Severity.ERROR, source=text, text=text)],
            log_lines=[LogLine(at=0.1, text=text)],
            engine_series=[
                SeriesScrape(at=0.1 + number, names=_series(text), numbers=pack_numbers([number]))
                for number in range(2)
            ],
        )
    )
    recorder.close(RunEnd(at=3.0, exit_code=3, reason=text))


def _manifest(text: str) -> dict[str, Any]:
    engine = {"argv": [text, f"--x={text}", text], "executable": text, "environment": {text: text}}
    gpu = {"driver": text, "devices": [{"name": text, text: text}]}
    return {"command_line": [text], "engine": engine, "gpu": gpu, "model": {"path": text}, "host": {"cpu": text}}


def _series(text: str) -> str:
    return f"vllm:request_success_total{{finished_reason={text}}}"
