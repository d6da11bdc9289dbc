"""Rows of a recording with the fields relevant to a test, and SQL statements that alter its file."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from servetop.core.events import EngineSample, StageChange


def stage(index: int, at: float, *, rate: float | None = 8.0, **fields: Any) -> StageChange:
    values = {"label": f"stage {index}", "max_concurrency": None, "max_num_seqs": None} | fields
    return StageChange(at=at, index=index, request_rate=rate, **values)


def sample(at: float, **fields: float | None) -> EngineSample:
    return EngineSample(scrape_start=at, scrape_end=at, **fields)


def change(path: Path, *statements: str) -> None:
    """Alter a recording by SQL statements, as an older or newer version of servetop or another program could."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)
