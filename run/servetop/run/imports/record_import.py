"""Writes a result of another load generator as a recording."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from servetop.core.clock import ClockAnchor, wall_clock
from servetop.core.config import EngineConfig, RunConfig, StageConfig, WorkloadConfig
from servetop.core.errors import RecordingError
from servetop.core.events import EngineSample, Note, RunEnd, Severity, StageChange
from servetop.core.interfaces.run_source import EngineFacts, RunHeader
from servetop.recordings.format.request_codec import last_known_at
from servetop.recordings.library.paths import new_recording_path
from servetop.recordings.write.connection import check_new
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.run.exit_code import close_recording
from servetop.run.imports.imported_result import ImportedResult
from servetop.run.imports.imported_ticks import imported_ticks
from servetop.run.manifest.file_digests import file_details
from servetop.run.manifest.versions import servetop_version
from servetop.run.record_prediction import write_virtual_run
from servetop.simulator.virtual_run.virtual_run import VirtualRun

IMPORTED = "imported"
"""The dataset of an imported run, whose prompts are unknown; also the source of its notes."""


def import_path(result: ImportedResult) -> Path:
    """Return an unused path in the recordings folder."""
    return new_recording_path(_config(result), wall_clock() if result.wall_epoch_s is None else result.wall_epoch_s)


def record_import(result: ImportedResult, source: Path | None, target: Path) -> None:
    """Write the run of a result to a new file; RecordingError if that fails.

    `source` is the file from which it was read, None for a run that was observed: its wall-clock time must be known.
    """
    check_new(target)
    config = _config(result)
    end = RunEnd(at=max(map(last_known_at, result.requests)), exit_code=0, reason="")
    run = VirtualRun(
        header=_header(result, source, config),
        ticks=tuple(imported_ticks(result.requests, result.load)),
        stages=(_stage(result),),
        log_lines=(),
        records=tuple(sorted(result.requests, key=last_known_at)),
        end=end,
        admissions=(),
    )
    recorder = write_virtual_run(run, target)
    notes = [Note(at=0.0, severity=Severity.WARNING, source=IMPORTED, text=each) for each in result.remarks]
    notes += [
        Note(at=0.0, severity=Severity.INFO, source=IMPORTED, text=f"not carried: {each}")
        for each in result.not_carried
    ]
    recorder.commit(TickTransaction(notes=notes))
    end, _ = close_recording(recorder, end, config)
    if end.exit_code:
        raise RecordingError(end.reason)


def _header(result: ImportedResult, source: Path | None, config: RunConfig) -> RunHeader:
    known = {
        "tool": result.tool,
        "version": result.version,
        "file": None if source is None else {"name": source.name, **file_details(source)},
        "reported": dict(result.reported) or None,
        "times_known": None if result.times_known else False,
        "scheduled": result.load.scheduled or None,
    }
    return RunHeader(
        config=config,
        anchor=ClockAnchor(
            origin_ns=result.origin_ns,
            wall_epoch_s=result.wall_epoch_s or (source.stat().st_mtime if source is not None else 0.0),
        ),
        versions={"servetop": servetop_version()},
        engine=EngineFacts(
            name=result.backend,
            title=result.backend,
            model=result.model or None,
            not_exported=tuple(each.name for each in dataclasses.fields(EngineSample)),
        ),
        manifest={IMPORTED: {key: value for key, value in known.items() if value is not None}},
    )


def _config(result: ImportedResult) -> RunConfig:
    return RunConfig(
        engine=EngineConfig(name=result.backend, model=result.model),
        workload=WorkloadConfig(
            dataset=IMPORTED,
            input_len=0,
            output_len=0,
            ignore_eos=False,
            endpoint=result.endpoint,
            tokenizer=result.tokenizer,
            burstiness=result.load.burstiness,
        ),
        stages=(_stage_config(result),),
        label=result.label,
        metadata=result.metadata,
    )


def _stage_config(result: ImportedResult) -> StageConfig:
    load = result.load
    return StageConfig(
        request_rate=load.request_rate,
        ramp_from=load.ramp_from,
        ramp_strategy=load.ramp_strategy,
        max_concurrency=load.max_concurrency,
        num_prompts=len(result.requests),
    )


def _stage(result: ImportedResult) -> StageChange:
    planned = _stage_config(result)
    return StageChange(
        at=0.0,
        index=0,
        label=planned.label,
        request_rate=planned.request_rate,
        ramp_from=planned.ramp_from,
        ramp_strategy=None if planned.ramp_from is None else planned.ramp_strategy,
        max_concurrency=planned.max_concurrency,
        max_num_seqs=None,
        num_prompts=planned.num_prompts,
    )
