"""An access log of a gateway, as docs/how-to/upgrade.md starts from: sessions that share a system prompt."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

_SYSTEM = "You are the assistant of a shop. Answer briefly, and name the page that you quote. " * 12
_AT = 1_795_875_000.0


def write_gateway_log(path: Path, *, sessions: int, seconds: float) -> None:
    """Write requests of sessions that begin evenly within a time; each has one to three turns."""
    draw = random.Random(40)
    rows = []
    for session in range(sessions):
        at = _AT + seconds * (session + draw.random()) / sessions
        messages = [{"role": "system", "content": _SYSTEM}]
        for turn in range(draw.randint(1, 3)):
            question = f"Question {turn} of customer {session}. " * draw.randint(2, 12)
            messages = [*messages, {"role": "user", "content": question}]
            output = draw.randint(10, 40)
            usage = {
                "prompt_tokens": sum(len(each["content"]) for each in messages) // 4,
                "completion_tokens": output,
            }
            rows.append({"ts": at, "session_id": f"s-{session}", "request": {"messages": messages}, "usage": usage})
            messages = [*messages, {"role": "assistant", "content": f"Answer {turn} to {session}. " * output}]
            at += draw.uniform(0.5, 2.0)
    path.write_text("".join(f"{json.dumps(each)}\n" for each in sorted(rows, key=lambda row: row["ts"])))  # type: ignore[arg-type, return-value]


if __name__ == "__main__":
    write_gateway_log(Path(sys.argv[1]), sessions=30, seconds=8.0)
