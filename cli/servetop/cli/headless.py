"""A run without a dashboard: progress on stderr while it runs, the summary on stdout at its end.

What a run does not need before its first request is loaded after it: progress, summary and tables.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from servetop.cli.run_process import play
from servetop.core.config import RunConfig

if TYPE_CHECKING:
    from servetop.cli.headless_progress import HeadlessProgress

POLL_SECONDS = 0.5


def run_headless(config: RunConfig, recording: Path, *, as_json: bool, resume: bool = False) -> int:
    """Play the run here and print what came of it; the exit code."""
    end = play(config, recording, resume=resume, watch=lambda: _watch(config, recording))
    from servetop.cli.report import print_end, print_summary
    from servetop.recordings.reader import RecordingReader
    from servetop.recordings.summary import run_summary

    reader = RecordingReader.open(recording)
    try:
        summary = run_summary(reader)
        if as_json or summary["num_prompts"]:
            print_summary(summary, as_json=as_json)
    finally:
        reader.close()
    print_end(recording)
    return end.exit_code


async def _watch(config: RunConfig, recording: Path) -> None:
    """Show the run's progress until cancelled, and once more then."""
    progress: HeadlessProgress | None = None
    try:
        while True:
            await asyncio.sleep(POLL_SECONDS)
            progress = progress or _progress(config, recording)
            progress.show()
    finally:
        progress = progress or _progress(config, recording)
        progress.close()


def _progress(config: RunConfig, recording: Path) -> HeadlessProgress:
    from servetop.cli.headless_progress import HeadlessProgress

    return HeadlessProgress(config, recording)
