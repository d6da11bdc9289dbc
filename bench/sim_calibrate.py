"""Fits the simulator's fitted parameters on the cells named in docs/explanation/simulator.md.

python bench/sim_calibrate.py [table4 table5 table8 servers table13 memgap rtx4090]
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from typing import Any

import sim_evidence

from servetop.core.config import StageConfig, WorkloadConfig
from servetop.simulator.predict.predict import PredictSpec, predict_cell
from servetop.simulator.validate.published import measured

BURSTS = WorkloadConfig(arrivals="in-process-burst")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fit:
    """A prediction whose numbers are fitted."""

    spec: PredictSpec = PredictSpec(workload=BURSTS)
    num_prompts: int = 5000

    def throughput(self, batch: int | None, rate: float) -> float:
        """Output tokens per second of one cell."""
        stage = StageConfig(max_num_seqs=batch, request_rate=rate, num_prompts=self.num_prompts)
        return predict_cell(self.spec, stage).output_throughput

    def with_settings(self, **settings: float) -> Fit:
        """Return the fit with these settings of the engine."""
        return self._changed(settings={**self.spec.settings, **settings})

    def with_lengths(self, mean: float, spread: float) -> Fit:
        """Return the fit with ShareGPT's prompts, and outputs scaled to a mean and spread."""
        caps = "input_cap=2048,output_cap=2048,total_cap=4096,subset=8192"
        lengths = f"sharegpt:{caps},sample={self.num_prompts},output_mean={mean},output_spread={spread}"
        return self._changed(workload=dataclasses.replace(self.spec.workload, lengths=lengths))

    def _changed(self, **fields: Any) -> Fit:
        return dataclasses.replace(self, spec=dataclasses.replace(self.spec, **fields))


FIXED = Fit()
SHAREGPT = Fit(num_prompts=1000)


def bisect(miss: Callable[[float], float], low: float, high: float) -> float:
    """Return the argument at which a decreasing `miss` crosses 0."""
    for _ in range(16):
        middle = (low + high) / 2
        low, high = (middle, high) if miss(middle) > 0 else (low, middle)
    return (low + high) / 2


def table4() -> None:
    """c1 of vllm-0.2.1 from the cell (128, 64 QPS)."""
    target = measured("table04_vllm")[(128, 64)]
    c1 = bisect(lambda c1: FIXED.with_settings(c1=c1).throughput(128, 64) - target, 0.05e-3, 0.3e-3)
    say(f"vllm-0.2.1: c1 = {c1:.4g}")


def table5() -> None:
    """c0 and c1 of tensorrt-llm-2024 from four cells of the 64-QPS column, least squares by pattern search."""
    cells = {key: value for key, value in measured("table05_tensorrt_llm").items() if key in TABLE5_CELLS}
    spaced = WorkloadConfig(arrivals="spaced")
    base = Fit(spec=PredictSpec(engine_profile="tensorrt-llm-2024", workload=spaced))

    def miss(c0: float, c1: float) -> float:
        fit = base.with_settings(c0=c0, c1=c1)
        return sum((fit.throughput(*key) / value - 1) ** 2 for key, value in cells.items())

    c0, c1 = pattern_search(miss, start=(1.0e-3, 0.07e-3), step=(0.4e-3, 0.01e-3))
    say(f"tensorrt-llm-2024: c0 = {c0:.4g}, c1 = {c1:.4g}")


TABLE5_CELLS = {(64, 64), (128, 64), (192, 64), (256, 64)}


def table8() -> None:
    """Mean and spread of the output lengths from vLLM's cells at 1 and 128 QPS."""
    table = measured("table08_sharegpt_7b", engine="vllm")
    mean, spread = lengths_fit(SHAREGPT, low=(1, table[1]), high=(128, table[128]))
    say(f"whitepaper-3: output_mean = {mean:.1f}, output_spread = {spread:.3f}")


def servers() -> None:
    """c1 of the other systems of Table 8, each from its cell at 128 QPS."""
    mean, spread = 232.0, 2.0
    for name, profile in (("rayllm-vllm", "rayllm-2024"), ("tgi", "tgi-2024"), ("triton-tensorrt-llm", "triton-2024")):
        base = Fit(spec=PredictSpec(engine_profile=profile, workload=BURSTS), num_prompts=1000)
        base = base.with_lengths(mean, spread)
        target = measured("table08_sharegpt_7b", engine=name)[128]
        c1 = bisect(lambda c1, b=base, t=target: b.with_settings(c1=c1).throughput(None, 128) - t, 0.0, 2e-3)  # type: ignore[misc]
        say(f"{profile}: c1 = {c1:.4g}")


def table13() -> None:
    """Mean and spread of Llama-2-13b-chat's output lengths from vLLM's cells at 0.5, 1.5 and 4 QPS."""
    table = measured("table13_13b_chat", engine="vllm")
    for count in (150, 200, 250, 300):
        base = Fit(spec=PredictSpec(model="llama-2-13b", workload=BURSTS), num_prompts=count)

        def miss(mean: float, spread: float, base: Fit = base) -> float:
            fit = base.with_lengths(mean, spread)
            return sum((fit.throughput(None, rate) / table[rate] - 1) ** 2 for rate in TABLE13_RATES)

        mean, spread = pattern_search(miss, start=(380.0, 1.5), step=(16.0, 0.16))
        error = miss(mean, spread)
        say(
            f"whitepaper-5, {count} requests: output_mean = {mean:.1f}, output_spread = {spread:.3f} (miss {error:.4f})"
        )


TABLE13_RATES = (0.5, 1.5, 4)


def memgap() -> None:
    """c0 and c1 of vllm-0.5 from OPT-1.3b on an H100 at batch sizes 1 and 256."""
    c0, c1 = 1.0e-3, 0.05e-3
    for _ in range(3):
        c0 = bisect(lambda c, c1=c1: memgap_miss(0, c0=c, c1=c1), 0.5e-3, 4e-3)  # type: ignore[misc]
        c1 = bisect(lambda c, c0=c0: memgap_miss(3, c0=c0, c1=c), 0.0, 0.2e-3)  # type: ignore[misc]
    say(f"vllm-0.5: c0 = {c0:.4g}, c1 = {c1:.4g}")


def memgap_miss(row: int, **settings: float) -> float:
    """Simulated minus measured throughput of one of the five runs."""
    _, measured_rate, simulated = sim_evidence.memgap(settings)[row]
    return simulated - measured_rate


def rtx4090() -> None:
    """Fraction of its data-sheet rates that an RTX 4090 achieves, from the mean TPOT of Llama-3.1-8B."""
    names = ("gpu.memory_efficiency", "gpu.kv_efficiency", "gpu.compute_efficiency")
    base = {"max_num_seqs": 256, "kv_blocks": 2588}

    def miss(share: float) -> float:
        return sim_evidence.llmservingsim("rtx4090", base | dict.fromkeys(names, share))["mean TPOT"] - 32.4

    say(f"rtx4090: efficiencies = {bisect(miss, 0.7, 1.1):.4f}")


def lengths_fit(base: Fit, *, low: tuple[float, float], high: tuple[float, float]) -> tuple[float, float]:
    """Fit alternately the mean to the unsaturated cell and the spread to the saturated one."""
    mean, spread = 230.0, 2.0
    for _ in range(3):
        mean = bisect(lambda m, s=spread: low[1] - base.with_lengths(m, s).throughput(None, low[0]), 100.0, 800.0)  # type: ignore[misc]
        spread = bisect(lambda s, m=mean: base.with_lengths(m, s).throughput(None, high[0]) - high[1], 0.3, 4.0)  # type: ignore[misc]
    return mean, spread


def pattern_search(
    miss: Callable[[float, float], float], *, start: tuple[float, float], step: tuple[float, float]
) -> tuple[float, float]:
    """Minimise by axis and diagonal moves, halving the step when none helps."""
    (x, y), (dx, dy) = start, step
    best, halvings = miss(x, y), 0
    for _ in range(40):
        moves = ((dx, 0), (-dx, 0), (0, dy), (0, -dy), (dx, -dy), (-dx, dy))
        tried = [(miss(x + a, y + b), x + a, y + b) for a, b in moves if x + a >= 0 and y + b >= 0]
        if min(tried)[0] < best:
            best, x, y = min(tried)
        else:
            dx, dy = dx / 2, dy / 2
            halvings += 1
        if halvings == 6:
            break
    return x, y


def say(text: str) -> None:
    """Print one line of the result."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    fits = {"table4": table4, "table5": table5, "table8": table8, "servers": servers, "table13": table13}
    fits |= {"memgap": memgap, "rtx4090": rtx4090}
    for wanted in sys.argv[1:] or fits:
        fits[wanted]()
