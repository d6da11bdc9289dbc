"""Rows of a recording, made of the fields that a test is about."""

from typing import Any

from servetop.core.events import EngineSample, StageChange


def stage(index: int, at: float, *, rate: float | None = 8.0, **fields: Any) -> StageChange:
    values = {"label": f"stage {index}", "max_concurrency": None, "max_num_seqs": None} | fields
    return StageChange(at=at, index=index, request_rate=rate, **values)


def sample(at: float, **fields: float | None) -> EngineSample:
    return EngineSample(scrape_start=at, scrape_end=at, **fields)
