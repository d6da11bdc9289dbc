"""Canned runs: whole runs made by a small deterministic model of a server, for dashboards to show without one.

A ramp of 4, 8, 16 and 20 requests/s meets a server of 2,880 KV blocks: they fill, it preempts, a queue grows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

from servetop.core.clock import ClockAnchor
from servetop.core.config import EngineConfig, RunConfig, StageConfig
from servetop.core.events import (
    Action,
    Command,
    EngineSample,
    GpuSample,
    LogLine,
    Note,
    RequestRecord,
    RequestStatus,
    RunEnd,
    Severity,
    StageChange,
)
from servetop.core.source import EngineFacts, RunHeader, RunUpdate
from servetop.core.tick import TICK_SECONDS, ClientTick, LoadGauges, LogHistogram, Tick

BOOT = 6.0
"""Seconds until the load begins."""
RATES = (4.0, 8.0, 16.0, 20.0)
STAGE_SECONDS = 30.0
BLOCKS = 2880
BATCH = 192
_BLOCKS_PER_REQUEST, _OUTPUT, _PROMPT = 24.0, 128, 512
_GIB = 1 << 30

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
    """A run in memory that implements RunSource. A live one shows what lies before `now` and obeys commands at once."""

    ticks: Sequence[Tick]
    facts: EngineFacts | None = VLLM
    config: RunConfig = CONFIG
    stages: Sequence[StageChange] = ()
    notes: Sequence[Note] = ()
    log_lines: Sequence[LogLine] = ()
    end: RunEnd | None = None
    now: float = math.inf
    live: bool = False
    answers: bool = True
    """Commands get a reply."""
    records: Sequence[RequestRecord] = ()
    sent: list[Command] = field(default_factory=list)
    _shown: float = -1.0
    _told: int = 0
    name = "canned"

    @property
    def header(self) -> RunHeader:
        return RunHeader(config=self.config, anchor=ClockAnchor(0, 1.7e9), engine=self.facts)

    def poll(self) -> RunUpdate:
        low, high = self._shown, self.now
        self._shown = high
        commands, self._told = self.sent[self._told :], len(self.sent)
        return RunUpdate(
            ticks=[tick for tick in self.ticks if low < tick.end <= high],
            stages=[stage for stage in self.stages if low < stage.at <= high],
            notes=[note for note in self.notes if low < note.at <= high],
            commands=commands,
            log_lines=[line for line in self.log_lines if low < line.at <= high],
            end=self.end if self.end and self.end.at <= high else None,
        )

    def is_live(self) -> bool:
        return self.live

    def send(self, action: Action, *, value: float | None = None, text: str = "") -> None:
        at = min(self.now, self.ticks[-1].end) if self.ticks else 0.0
        reply = f"{action.value} obeyed" if self.answers else None
        self.sent.append(
            Command(id=len(self.sent), at=at, action=action, value=value, text=text, source="keyboard",
                    obeyed_at=at if self.answers else None, reply=reply)
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


@cache
def records() -> Sequence[RequestRecord]:
    """Requests of the ramp by due time: every 40th fails, every 90th is never answered; the later, the slower."""
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
        prompt_tokens=_PROMPT + number % 64, output_tokens=times.size,
        status=RequestStatus.TIMEOUT if silent else (RequestStatus.ERROR if failed else RequestStatus.OK),
        error="timed out after 5 s" if silent else ("HTTP 500: engine died" if failed else None),
        chunk_times=times, chunk_tokens=np.ones(times.size, dtype=np.int64),
    )  # fmt: skip


@cache
def ticks(*, engine: bool = True, gpus: int = 1, seconds: float | None = None) -> Sequence[Tick]:
    """Ticks of the ramp, the first BOOT seconds without load."""
    length = BOOT + STAGE_SECONDS * len(RATES) if seconds is None else seconds
    return tuple(_simulated(round(length / TICK_SECONDS), engine=engine, gpus=gpus))


def _simulated(count: int, *, engine: bool, gpus: int) -> Iterator[Tick]:
    rng = np.random.default_rng(7)
    waiting = running = preempted = generated = prompted = done_share = 0.0
    times = [0.0] * 4
    for index in range(count):
        at = (index + 1) * TICK_SECONDS
        stage = min(int((at - BOOT - 1e-9) // STAGE_SECONDS), len(RATES) - 1) if at > BOOT else -1
        rate = RATES[stage] if stage >= 0 else 0.0
        due = int(rng.poisson(rate * TICK_SECONDS))
        room = BLOCKS / _BLOCKS_PER_REQUEST
        waiting += due
        admitted = min(waiting, BATCH - running, max(0.0, room - running))
        waiting, running = waiting - admitted, running + admitted
        grown = running * (1 + 0.04 * math.sin(at))
        evicted = max(0.0, grown - room * 0.96) * 0.5 if grown > room * 0.96 else 0.0
        speed = 2900.0 * running / (running + 36.0)
        tokens = int(speed * TICK_SECONDS)
        done_share += tokens / _OUTPUT
        finished = int(min(done_share, running))
        done_share -= finished
        running -= finished
        preempted, generated, prompted = preempted + int(evicted), generated + tokens, prompted + admitted * _PROMPT
        usage = min(grown * _BLOCKS_PER_REQUEST / BLOCKS, 0.998)
        client = _client(index, stage, rate, due, finished, tokens, admitted, waiting, running, speed, rng)
        sample = _sample(at, running, waiting, usage, preempted, prompted, generated)
        yield Tick(
            client=client,
            engine=_timed(sample, client, finished, times) if engine else None,
            gpus=tuple(_gpu(at, number, usage if stage >= 0 else 0.02) for number in range(gpus)),
        )


def _timed(sample: EngineSample, client: ClientTick, finished: int, sums: list[float]) -> EngineSample:
    """An engine that sees each first token 4 ms before its client does, and prefills in 41 ms."""
    count, queue = client.ttft.count, max(client.ttft.mean - 0.047, 0.0) if client.ttft.count else 0.0
    new = (client.ttft.total - 0.004 * count, count, finished * queue, finished * bool(count))
    sums[:] = [was + more for was, more in zip(sums, new, strict=True)]
    return replace(
        sample, first_token_seconds_total=sums[0], first_tokens_total=sums[1], queue_seconds_total=sums[2],
        queued_requests_total=sums[3], prefill_seconds_total=0.041 * sums[3], prefilled_requests_total=sums[3],
    )  # fmt: skip


def _client(
    index: int, stage: int, rate: float, due: int, finished: int, tokens: int, admitted: float, waiting: float,
    running: float, speed: float, rng: np.random.Generator,
) -> ClientTick:  # fmt: skip
    itl = 0.012 + running / 9000
    ttft = 0.05 + waiting / max(speed / _OUTPUT, 1.0)
    first = round(admitted)
    noise = rng.lognormal(0.0, 0.35, size=max(first, finished, 1))
    return ClientTick(
        index=index,
        gauges=LoadGauges(stage=stage, request_rate=rate if stage >= 0 else None, in_flight=round(running + waiting)),
        due=due,
        sent=due,
        ok=finished,
        prompt_tokens=first * _PROMPT,
        output_tokens=tokens,
        chunks=tokens,
        cpu_seconds=0.02,
        ttft=LogHistogram.of(ttft * noise[:first]),
        ttft_due=LogHistogram.of(ttft * noise[:first] + 0.0007),
        itl=LogHistogram.of(itl * noise[:1], weights=[max(tokens, 1)]) if tokens else LogHistogram.of([]),
        tpot=LogHistogram.of(itl * noise[:finished]),
        e2el=LogHistogram.of((ttft + itl * _OUTPUT) * noise[:finished]),
        slip=LogHistogram.of(np.full(due, 0.0007)),
        loop_lag=LogHistogram.of(np.full(10, 0.0004)),
    )


def _sample(
    at: float, running: float, waiting: float, usage: float, preempted: float, prompted: float, generated: float
) -> EngineSample:
    return EngineSample(
        scrape_start=at - 0.01, scrape_end=at - 0.006, running=round(running), waiting=round(waiting),
        kv_blocks_used=round(usage * BLOCKS), kv_blocks_total=BLOCKS, kv_usage=usage, preemptions_total=preempted,
        prompt_tokens_total=prompted, generation_tokens_total=generated, prefix_cache_hits_total=prompted * 0.31,
        prefix_cache_queries_total=prompted, max_num_seqs=BATCH,
    )  # fmt: skip


def _gpu(at: float, index: int, busy: float) -> GpuSample:
    return GpuSample(
        at=at, index=index, name="NVIDIA H200", utilisation=min(0.02 + busy * 0.97, 0.99),
        memory_used=int(126.4 * _GIB), memory_total=int(139.8 * _GIB), power=120 + 560 * busy,
        temperature=38 + 30 * busy, sm_clock=1.98e9,
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
        level, words = (
            ("WARNING", "Sequence group 812 is preempted by RECOMPUTE")
            if number > 8
            else ("INFO", "Engine 000: Avg generation throughput: 2,814.3 tokens/s")
        )
        lines.append(
            LogLine(at=BOOT + 10.0 * number - 3, text=f"{level} 11-21 10:59:{number:02d} [loggers.py:116] {words}")
        )
    return lines


def stage_changes() -> list[StageChange]:
    """Boot, then the four stages."""
    boot = StageChange(at=0.0, index=-1, label="starting", request_rate=None, max_concurrency=None, max_num_seqs=BATCH)
    return [boot] + [
        StageChange(at=BOOT + number * STAGE_SECONDS, index=number, label=stage.label, request_rate=stage.request_rate,
                    max_concurrency=None, max_num_seqs=BATCH)
        for number, stage in enumerate(STAGES)
    ]  # fmt: skip


NOTES = (
    Note(at=40.0, severity=Severity.INFO, source="user", text="prefix cache warmed"),
    Note(at=72.0, severity=Severity.WARNING, source="metrics", text="no answer within 1 s: is the server overloaded?"),
)


def finished() -> CannedRun:
    """A whole run that ended well."""
    return CannedRun(
        ticks=ticks(), stages=stage_changes(), notes=NOTES, log_lines=boot_log(), records=records(),
        end=RunEnd(at=BOOT + STAGE_SECONDS * len(RATES), exit_code=0, reason=""),
    )  # fmt: skip


def growing(now: float = 110.0, *, facts: EngineFacts = SIM) -> CannedRun:
    """The same run while it goes on, at second `now`."""
    run = finished()
    run.end, run.live, run.now, run.facts = None, True, now, facts
    return run


def without_metrics() -> CannedRun:
    """An attached engine that exports nothing, on a machine without a GPU; the client alone is seen."""
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
    """An engine that gave up."""
    reason = "vLLM exited with code 1 after 3.2 s: torch.OutOfMemoryError: try --gpu-memory-utilization 0.8"
    lines = [*boot_log()[:3], LogLine(at=3.0, text="ERROR torch.OutOfMemoryError: CUDA out of memory.")]
    return CannedRun(
        ticks=[], facts=None, stages=stage_changes()[:1], log_lines=lines,
        notes=[Note(at=3.2, severity=Severity.ERROR, source="engine", text=reason)],
        end=RunEnd(at=3.25, exit_code=3, reason=reason),
    )  # fmt: skip


EVIL = "\x1b]0;owned\x07\x1b[2J\x1b[31m[bold red]evil[/] \u202egnp.exe\x9b5m [link=x]ツール\r\n"


def hostile() -> CannedRun:
    """Every text from outside tries to break out."""
    run = finished()
    run.facts = replace(VLLM, title=EVIL, version=EVIL, model=EVIL)
    run.stages = [replace(stage, label=EVIL + stage.label) for stage in run.stages]
    run.notes = [replace(note, text=EVIL + note.text) for note in run.notes]
    run.log_lines = [replace(line, text=EVIL + line.text) for line in run.log_lines]
    run.ticks = [replace(tick, gpus=tuple(replace(gpu, name=EVIL) for gpu in tick.gpus)) for tick in run.ticks]
    return run
