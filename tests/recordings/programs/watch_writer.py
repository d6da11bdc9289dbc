"""A watch for the tests: `watch_writer.py FILE` records ticks in virtual time until it is killed.

What is older than ten seconds is merged, what is older than a minute is dropped. It prints `tick N` for each tick.
"""

import sys
from pathlib import Path

from servetop.core.clock import ClockAnchor
from servetop.core.config import RunConfig
from servetop.core.config_values.watch_config import WatchConfig
from servetop.core.interfaces.run_source import RunHeader
from servetop.recordings.write.recorder import Recorder
from tests.recordings.watched_rows import watched_tick


def main(path: str) -> None:
    """Write the file."""
    config = RunConfig(stages=(), watch=WatchConfig())
    recorder = Recorder.create(Path(path), RunHeader(config=config, anchor=ClockAnchor.take()))
    recorder.downsample(keep=60.0, full=10.0)
    number = 0
    while True:
        recorder.commit(watched_tick(number))
        sys.stdout.write(f"tick {number}\n")
        sys.stdout.flush()
        number += 1


if __name__ == "__main__":
    main(sys.argv[1])
