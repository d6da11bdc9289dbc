"""Scenarios in which prompts are ten times as long for 10 to 20 s of a run that is healthy before and after."""

from __future__ import annotations

import dataclasses
import os
import tempfile
from pathlib import Path
from random import Random

from servetop.core.config import StageConfig, WorkloadConfig
from servetop.simulator.virtual_run.virtual_run import run_virtually
from tests.judgement.machines import draw_base, plan_of
from tests.judgement.queue_truth import in_time, lasting_queues, share_in_time
from tests.judgement.scenario import Cause, Scenario, Truth

FACTOR = 10
"""Length of the long prompts relative to the others."""
_RATES = (2.0, 40.0)
_DURATION = 90.0


def long_prompts(random: Random, name: str) -> Scenario | None:
    """Draw a trace with a burst of long prompts; None if the burst does no harm, or harms the run for good."""
    workload = WorkloadConfig(input_len=random.randint(100, 320), output_len=random.randint(30, 120))
    base = draw_base(random, workload)
    if not _RATES[0] <= base.saturated <= _RATES[1]:
        return None
    start, length = round(random.uniform(30.0, 40.0), 1), round(random.uniform(10.0, 20.0), 1)
    rate, share = random.uniform(0.3, 0.5) * base.saturated, random.choice((0.5, 0.8, 1.0))
    rows = _rows(random, workload, rate=rate, burst=(start, start + length), share=share)
    mean_rate = (len(rows) - 1) / (rows[-1][0] - rows[0][0])
    path = _written(rows, name)
    replayed = dataclasses.replace(
        workload, dataset="trace", dataset_path=str(path), arrivals="trace", trace_rate=mean_rate
    )
    stage = StageConfig(request_rate=mean_rate, num_prompts=len(rows))
    plan = plan_of(base, name, (stage,), workload=replayed)
    plan = dataclasses.replace(plan, config=dataclasses.replace(plan.config, stages=(stage,)))
    run = run_virtually(plan)
    onset = min(record.due for record in run.records if record.prompt_tokens > _longest(workload))
    late = [record for record in run.records if not in_time(record, base.objective)]
    until = max((record.first_token_at or 0.0 for record in late), default=0.0)
    before, during, after = (
        share_in_time(run, base.objective, start=begin, until=end)
        for begin, end in ((0.0, onset - 1.0), (onset, onset + length + 5.0), (until, 1e9))
    )
    if before < 0.98 or during > 0.7 or not onset < until < _DURATION - 10.0 or after < 0.99:
        return None
    queues = lasting_queues(run)
    detail = f"{share:.0%} of the prompts {FACTOR} times as long for {length:g} s"
    detail += f", waiting for {queues[0].limit}" if queues else ""
    truth = Truth(cause=Cause.LONG_PROMPTS, onset=onset, first_sign=onset, until=until, detail=detail)
    return Scenario(name=name, kind="long prompts", plan=plan, truth=truth, base=base).keeping(run)


def _longest(workload: WorkloadConfig) -> float:
    """Tokens above which a prompt belongs to the burst."""
    return 2.0 * workload.input_len


def _rows(
    random: Random, workload: WorkloadConfig, *, rate: float, burst: tuple[float, float], share: float
) -> list[tuple[float, int, int]]:
    """Poisson arrivals with their prompt and output tokens, all but the long ones within 30 % of the mean."""
    rows = []
    at = random.expovariate(rate)
    while at < _DURATION:
        prompt = round(workload.input_len * random.uniform(0.7, 1.3))
        if burst[0] <= at < burst[1] and random.random() < share:
            prompt *= FACTOR
        rows.append((at, min(prompt, 3800), round(workload.output_len * random.uniform(0.7, 1.3))))
        at += random.expovariate(rate)
    return rows


def _written(rows: list[tuple[float, int, int]], name: str) -> Path:
    """Write the trace to a file of the folder for temporary files; the same scenario always has the same file."""
    folder = Path(tempfile.gettempdir()) / f"servetop-judgement-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    path = folder / f"{name.replace(' ', '-')}.csv"
    lines = "".join(f"{at:.6f},{prompt},{output}\n" for at, prompt, output in rows)
    partial = path.with_suffix(f".{os.getpid()}")
    partial.write_text(f"arrival_s,input,output\n{lines}", encoding="utf-8")
    partial.replace(path)
    return path
