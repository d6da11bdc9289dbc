"""Canned runs: complete runs from a small deterministic model of a server, for dashboards without a real one.

A ramp of 4, 8, 16 and 20 requests/s meets a server of 2,880 KV blocks: they fill, it preempts, a queue grows.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

from servetop.core.clock import ClockAnchor
from servetop.core.config import EngineConfig, RunConfig, StageConfig
from servetop.core.events import (
    Action,
    Command,
    EngineSample,
    LogLine,
    Note,
    RequestRecord,
    RequestStatus,
    RunEnd,
    Severity,
    StageChange,
)
from servetop.core.interfaces.request_in_flight import RequestInFlight
from servetop.core.interfaces.run_source import EngineFacts, RunHeader, RunUpdate
from servetop.core.interfaces.search_state import SearchState
from servetop.core.interfaces.series_scrape import SeriesScrape
from servetop.core.interfaces.skipped_cell import SkippedCell
from servetop.core.interfaces.stage_row import planned_row
from servetop.core.tick import Tick
from tests.tui.canned_series import series
from tests.tui.canned_server import BATCH, BLOCKS, BOOT, PEAK_SPEED, PROMPT, RATES, STAGE_SECONDS, ticks

VLLM = EngineFacts(
    name="vllm", title="vLLM", version="0.32.0", model="meta-llama/Llama-2-7b-hf", url="http://127.0.0.1:8000",
    managed=True, pid=4242, kv_blocks_total=BLOCKS, block_size=16, max_num_seqs=BATCH,
)  # fmt: skip
SIM = replace(VLLM, name="sim", title="simulator", version=None, model="llama-2-7b", changes_batch_size_live=True)
NO_METRICS = EngineFacts(
    name="tgi", title="TGI", version="3.3", model="llama-2-7b", url="http://gpu7:8080",
    not_exported=("running", "waiting", "kv_usage", "kv_blocks_used", "kv_blocks_total", "preemptions_total",
                  "generation_tokens_total", "prompt_tokens_total", "queue_seconds_total", "prefill_seconds_total"),
)  # fmt: skip
STAGES = tuple(StageConfig(request_rate=rate, duration=STAGE_SECONDS, max_num_seqs=BATCH) for rate in RATES)
CONFIG = RunConfig(engine=EngineConfig(name="vllm", model="llama-2-7b"), stages=STAGES)


@dataclass(kw_only=True)
class CannedRun:
    """A RunSource in memory; a live one returns what is before `now` and applies commands at once."""

    ticks: Sequence[Tick]
    facts: EngineFacts | None = VLLM
    config: RunConfig = CONFIG
    stages: Sequence[StageChange] = ()
    skipped: Sequence[SkippedCell] = ()
    notes: Sequence[Note] = ()
    log_lines: Sequence[LogLine] = ()
    series: Sequence[SeriesScrape] = ()
    has_series: bool = True
    end: RunEnd | None = None
    now: float = math.inf
    live: bool = False
    answers: bool = True
    """Whether commands get a reply."""
    records: Sequence[RequestRecord] = ()
    search_states: Sequence[SearchState] = ()
    sent: list[Command] = field(default_factory=list)
    _shown: float = -1.0
    _given: float = -1.0
    """The start of the ticks of an update in parts."""
    _more: bool = False
    _reported: int = 0
    name = "canned"

    @property
    def header(self) -> RunHeader:
        return RunHeader(
            config=self.config, anchor=ClockAnchor(0, 1.7e9), engine=self.facts, has_engine_series=self.has_series
        )

    def poll(self, *, most_ticks: int | None = None) -> RunUpdate:
        low, high = self._shown, self.now
        ticks = [tick for tick in self.ticks if low < tick.end <= high]
        if most_ticks is not None and len(ticks) > most_ticks:
            self._given, self._shown = self._given if self._more else low, ticks[most_ticks - 1].end
            self._more = True
            return RunUpdate(ticks=ticks[:most_ticks], more=True)
        self._shown = high
        if self._more:
            self._more, low = False, self._given
        commands, self._reported = self.sent[self._reported :], len(self.sent)
        if high <= low:
            return RunUpdate(commands=commands)
        return RunUpdate(
            ticks=ticks,
            stages=[stage for stage in self.stages if low < stage.at <= high],
            skipped=[cell for cell in self.skipped if low < cell.at <= high],
            notes=[note for note in self.notes if low < note.at <= high],
            commands=commands,
            engine_series=[scrape for scrape in self.series if low < scrape.at <= high],
            log_lines=[line for line in self.log_lines if low < line.at <= high],
            search_states=[each for each in self.search_states if low < each.at <= high],
            end=self.end if self.end and self.end.at <= high else None,
        )

    def is_live(self) -> bool:
        return self.live

    def send(self, action: Action, *, value: float | None = None, text: str = "") -> None:
        at = min(self.now, self.ticks[-1].end) if self.ticks else 0.0
        reply = f"{action.value} applied" if self.answers else None
        self.sent.append(
            Command(id=len(self.sent), at=at, action=action, value=value, text=text, source="keyboard",
                    applied_at=at if self.answers else None, reply=reply)
        )  # fmt: skip

    def requests(
        self, start: float, until: float, *, ended_by: float = math.inf, most: int | None = None
    ) -> Sequence[RequestRecord]:
        known = min(ended_by, self.now if self.live else math.inf)
        found = [
            each
            for each in self.records
            if each.sent is not None and each.sent <= until and start <= (each.done_at or each.sent) <= known
        ]
        return found if most is None else found[-most:]

    def in_flight(self) -> Sequence[RequestInFlight]:
        under_way = [each for each in self.records if (each.sent or math.inf) <= self.now < (each.done_at or 0.0)]
        return [_as_known(each, self.now) for each in under_way if self.live]

    def past_ticks(self, first: int, last: int) -> Sequence[Tick]:
        return [tick for tick in self.ticks if first <= tick.index <= last]


def _as_known(record: RequestRecord, at: float) -> RequestInFlight:
    received = int(np.searchsorted(record.chunk_times, at, side="right"))
    return RequestInFlight(
        at=at, id=record.id, stage=record.stage, due=record.due, sent=record.sent,
        first_token_at=float(record.chunk_times[0]) if received else None,
        last_token_at=float(record.chunk_times[received - 1]) if received else None,
        prompt_tokens=record.prompt_tokens, output_tokens=int(record.chunk_tokens[:received].sum()),
    )  # fmt: skip


@cache
def records() -> Sequence[RequestRecord]:
    """Requests of the ramp by due time: every 40th fails, every 90th times out; latencies grow with the stage."""
    rng = np.random.default_rng(11)
    found: list[RequestRecord] = []
    due = BOOT
    while due < BOOT + STAGE_SECONDS * len(RATES) - 8:
        stage = min(int((due - BOOT) // STAGE_SECONDS), len(RATES) - 1)
        found.append(_record(len(found), stage, due, rng))
        due += float(rng.exponential(1 / RATES[stage]))
    return tuple(found)


def _record(number: int, stage: int, due: float, rng: np.random.Generator) -> RequestRecord:
    sent = due + (0.0005 if stage < 3 else float(rng.uniform(0, 0.6)))
    first = sent + 0.06 * (1 + stage**2) * float(rng.lognormal(0, 0.4))
    gaps = (0.014 + 0.006 * stage) * rng.lognormal(0, 0.3, size=int(rng.integers(40, 160)))
    gaps[len(gaps) // 3] += 0.25 * (stage > 1)
    times = np.concatenate(([first], first + np.cumsum(gaps)))
    failed, silent = number % 40 == 39, number % 90 == 89
    times = times[:0] if silent else (times[: len(times) // 2] if failed else times)
    return RequestRecord(
        id=number, stage=stage, due=due, sent=sent, headers_at=sent + 0.01,
        first_token_at=float(times[0]) if times.size else None,
        done_at=float(times[-1]) + 0.001 if times.size else sent + 5.0,
        prompt_tokens=PROMPT + number % 64, output_tokens=times.size,
        status=RequestStatus.TIMEOUT if silent else (RequestStatus.ERROR if failed else RequestStatus.OK),
        error="timed out after 5 s" if silent else ("HTTP 500: engine died" if failed else None),
        chunk_times=times, chunk_tokens=np.ones(times.size, dtype=np.int64),
    )  # fmt: skip


LOG = (
    "INFO 11-21 10:58:01 [api_server.py:1289] vLLM API server version 0.32.0",
    "INFO 11-21 10:58:02 [config.py:840] This model supports multiple tasks: {'generate'}. Defaulting to 'generate'.",
    "Loading safetensors checkpoint shards: 100% Completed | 2/2 [00:01<00:00,  1.21it/s]",
    "INFO 11-21 10:58:04 [kv_cache_utils.py:634] GPU KV cache size: 46,080 tokens",
    "INFO 11-21 10:58:05 [api_server.py:1336] Starting vLLM API server on http://127.0.0.1:8000",
    "INFO 11-21 10:58:06 Application startup complete.",
)


def boot_log() -> list[LogLine]:
    """Six lines in the first six seconds, then one every ten seconds."""
    lines = [LogLine(at=0.5 + 1.05 * number, text=text) for number, text in enumerate(LOG)]
    for number in range(1, 13):
        level, text = (
            ("WARNING", "Sequence group 812 is preempted by RECOMPUTE")
            if number > 8
            else ("INFO", "Engine 000: Avg generation throughput: 2,814.3 tokens/s")
        )
        lines.append(
            LogLine(at=BOOT + 10.0 * number - 3, text=f"{level} 11-21 10:59:{number:02d} [loggers.py:116] {text}")
        )
    return lines


def stage_changes() -> list[StageChange]:
    """Engine start, then the four stages."""
    boot = StageChange(at=0.0, index=-1, label="starting", request_rate=None, max_concurrency=None, max_num_seqs=BATCH)
    return [boot] + [
        dataclasses.replace(planned_row(stage, at=BOOT + number * STAGE_SECONDS, index=number), max_num_seqs=BATCH)
        for number, stage in enumerate(STAGES)
    ]


NOTES = (
    Note(at=40.0, severity=Severity.INFO, source="user", text="prefix cache warmed"),
    Note(
        at=72.0, severity=Severity.WARNING, source="metrics", text="no response within 1 s: is the server overloaded?"
    ),
)


def finished() -> CannedRun:
    """A complete run that succeeded."""
    return CannedRun(
        ticks=ticks(), stages=stage_changes(), notes=NOTES, log_lines=boot_log(), records=records(),
        series=series(ticks()),
        end=RunEnd(at=BOOT + STAGE_SECONDS * len(RATES), exit_code=0, reason=""),
    )  # fmt: skip


def baseline() -> CannedRun:
    """The same ramp on a slower server that is not the same in two settings."""
    run = finished()
    run.ticks = ticks(peak_speed=PEAK_SPEED * 0.8)
    run.config = replace(CONFIG, label="main", seed=7)
    run.facts = replace(VLLM, kv_blocks_total=BLOCKS - 300)
    return run


def growing(now: float = 110.0, *, facts: EngineFacts = SIM) -> CannedRun:
    """The same run while it is live, at second `now`."""
    run = finished()
    run.end, run.live, run.now, run.facts = None, True, now, facts
    return run


def without_metrics() -> CannedRun:
    """An attached engine without metrics, on a machine without a GPU."""
    config = replace(CONFIG, engine=EngineConfig(name="tgi", url="http://gpu7:8080"))
    bare = [EngineSample(scrape_start=tick.end - 0.01, scrape_end=tick.end) for tick in ticks(gpus=0)]
    rows = [replace(tick, engine=sample) for tick, sample in zip(ticks(gpus=0), bare, strict=True)]
    return CannedRun(
        ticks=rows, facts=NO_METRICS, config=config, stages=stage_changes(),
        end=RunEnd(at=BOOT + STAGE_SECONDS * len(RATES), exit_code=0, reason=""),
    )  # fmt: skip


def booting(now: float = 4.0) -> CannedRun:
    """An engine that is still loading."""
    return CannedRun(
        ticks=[], facts=None, stages=stage_changes()[:1], log_lines=boot_log(), now=now, live=True,
    )  # fmt: skip


def failed_to_start() -> CannedRun:
    """An engine that failed to start."""
    reason = "vLLM exited with code 1 after 3.2 s: torch.OutOfMemoryError: try --gpu-memory-utilization 0.8"
    lines = [*boot_log()[:3], LogLine(at=3.0, text="ERROR torch.OutOfMemoryError: CUDA out of memory.")]
    return CannedRun(
        ticks=[], facts=None, stages=stage_changes()[:1], log_lines=lines,
        notes=[Note(at=3.2, severity=Severity.ERROR, source="engine", text=reason)],
        end=RunEnd(at=3.25, exit_code=3, reason=reason),
    )  # fmt: skip


EVIL = "\x1b]0;owned\x07\x1b[2J\x1b[31m[bold red]evil[/] \u202egnp.exe\x9b5m [link=x]ツール\r\n"


def hostile() -> CannedRun:
    """A run in which every external text contains escape sequences and markup."""
    run = finished()
    run.facts = replace(VLLM, title=EVIL, version=EVIL, model=EVIL)
    run.stages = [replace(stage, label=EVIL + stage.label) for stage in run.stages]
    run.notes = [replace(note, text=EVIL + note.text) for note in run.notes]
    run.log_lines = [replace(line, text=EVIL + line.text) for line in run.log_lines]
    run.ticks = [replace(tick, gpus=tuple(replace(gpu, name=EVIL) for gpu in tick.gpus)) for tick in run.ticks]
    return run
