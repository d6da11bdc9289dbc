"""An engine for `--engine-command` that is never ready after a restart; the file in `MARK` records the first start."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("--model", "--host", "--port", "--max-num-seqs"):
        parser.add_argument(name)
    options, _ = parser.parse_known_args()
    mark = Path(os.environ["MARK"])
    if mark.exists():
        signal.pause()
    mark.touch()
    server = [
        "servetop",
        "serve",
        "--host",
        options.host,
        "--port",
        options.port,
        "--model",
        options.model,
    ]
    os.execv(sys.executable, [sys.executable, "-m", *server])


if __name__ == "__main__":
    main()
