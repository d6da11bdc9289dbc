"""The simulator is started, recognised, changed and stopped like any engine."""

from __future__ import annotations

import pytest

from servetop.core.clock import MonotonicClock
from servetop.core.config import EngineConfig
from servetop.core.errors import EngineError, UsageError
from servetop.core.events import LogLine
from servetop.engines.attach import attach_engine
from servetop.engines.start import start_engine


async def test_a_started_simulator_is_recognised_reconfigured_and_attached(
    clock: MonotonicClock,
) -> None:
    lines: list[LogLine] = []
    config = EngineConfig(name="sim", max_num_seqs=32, extra_args=("--kv-blocks", "600"))
    handle = await start_engine(config, clock, on_line=lines.append)
    facts = handle.facts
    assert (facts.name, facts.version, facts.model) == ("sim", "vllm-0.2.1", "llama-2-7b")
    assert (facts.kv_blocks_total, facts.block_size, facts.max_num_seqs, facts.not_exported) == (600, 16, 32, ())
    assert lines

    assert await handle.set_max_num_seqs(48)
    sample = await handle.sample()
    assert sample is not None
    assert (sample.max_num_seqs, sample.kv_blocks_total, sample.kv_usage) == (48, 600, 0)
    assert handle.facts.max_num_seqs == 48
    with pytest.raises(EngineError, match="refused batch size 0"):
        await handle.set_max_num_seqs(0)

    attached = await attach_engine(EngineConfig(name="auto", model="", url=handle.url, max_num_seqs=16), clock)
    assert (attached.facts.name, attached.facts.managed, attached.facts.max_num_seqs) == ("sim", False, 16)
    await attached.stop()
    with pytest.raises(EngineError, match="responds like servetop simulator, not like vLLM: give --engine sim"):
        await attach_engine(EngineConfig(name="vllm", model="", url=handle.url), clock)

    report = await handle.stop()
    assert (report.signals, report.exit_code, report.trouble) == (("SIGINT",), 0, None)


async def test_a_model_without_a_profile_is_rejected_with_the_closest_name(clock: MonotonicClock) -> None:
    with pytest.raises(UsageError, match=r"llama-2-8b.*did you mean"):
        await start_engine(EngineConfig(name="sim", model="llama-2-8b"), clock, on_line=lambda _: None)


async def test_an_option_that_the_simulator_does_not_have_is_named(clock: MonotonicClock) -> None:
    config = EngineConfig(name="sim", extra_args=("--warp", "9"))
    with pytest.raises(EngineError, match="servetop simulator did not start: no such option: --warp"):
        await start_engine(config, clock, on_line=lambda _: None)
