"""Measures the cost of parsing an event: with the full parser and with event templates, for several servers.

`python bench/parser.py` prints nanoseconds per event, with one event and with 16 events per read.
"""

from __future__ import annotations

import timeit
from pathlib import Path
from time import process_time

from servetop.engines.dialects.event_template import TemplateCache
from servetop.engines.dialects.json_event import Reader, read_chat, read_completion
from servetop.engines.dialects.openai_responses import read_response
from servetop.engines.dialects.stream_parser import EventStream

EVENTS = 20_000
DATA = Path(__file__).parents[1] / "tests" / "engines" / "dialects" / "data"
SSESERVER = (
    b'data: {"id":"cmpl-00000001","object":"text_completion","created":1795252819,"model":"bench","choices":'
    b'[{"index":0,"text":" tok","logprobs":null,"finish_reason":null,"stop_reason":null}]}\n\n'
)
CONTINUOUS = SSESERVER.replace(
    b"]}\n\n", b'],"usage":{"prompt_tokens":16,"total_tokens":20,"completion_tokens":4}}\n\n'
)


def captured(name: str, marker: bytes) -> bytes:
    """Return the second event of a captured stream that has text after the marker."""
    events = (DATA / f"{name}.txt").read_bytes().replace(b"\r\n", b"\n").partition(b"\n\n")[2].split(b"\n\n")
    worded = [event for event in events if marker in event and marker + b'"' not in event]
    return worded[1] + b"\n\n"


def cost(reader: Reader, event: bytes, *, shapes: TemplateCache | None, together: int, continuous: bool) -> float:
    """Return CPU nanoseconds per event, best of five."""
    stream = EventStream(reader, shapes, continuous=continuous, keep_texts=False)
    events = [event.replace(b'"sequence_number":12', b'"sequence_number":%d' % number) for number in range(10, 26)]
    reads = events if together == 1 else [b"".join(events)]
    stream.feed(event)

    def feed_all() -> None:
        for read in reads:
            stream.feed(read)

    rounds = EVENTS // len(events)
    return min(timeit.repeat(feed_all, number=rounds, repeat=5, timer=process_time)) / (rounds * len(events)) * 1e9


def main() -> None:
    """Print the table."""
    kinds: list[tuple[str, Reader, bytes, bool]] = [
        ("bench/sseserver", read_completion, SSESERVER, False),
        ("with continuous usage", read_completion, CONTINUOUS, True),
        ("vLLM completions", read_completion, captured("vllm_completions_stream", b'"text":"'), False),
        ("vLLM chat", read_chat, captured("vllm_chat_reasoning_stream", b'"content":"'), False),
        ("vLLM responses", read_response, captured("vllm_responses_reasoning_stream", b'"delta":"'), False),
        ("llama.cpp completions", read_completion, captured("llamacpp_completions_stream", b'"text":"'), False),
    ]
    print(
        f"{'ns an event':<24}{'exact':>8}{'by shape':>10}{'ratio':>7}{'exact, 16':>11}{'by shape, 16':>14}{'ratio':>7}"
    )
    for name, reader, event, continuous in kinds:
        found = [
            cost(reader, event, shapes=shapes, together=together, continuous=continuous)
            for together in (1, 16)
            for shapes in (None, TemplateCache(reader))
        ]
        one, quick, many, quickly = found
        print(
            f"{name:<24}{one:>8.0f}{quick:>10.0f}{quick / one:>7.2f}{many:>11.0f}{quickly:>14.0f}{quickly / many:>7.2f}"
        )


if __name__ == "__main__":
    main()
