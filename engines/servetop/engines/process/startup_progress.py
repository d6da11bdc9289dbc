"""Start-up progress of an engine, parsed from its log: download, weights, CUDA graphs, warm-up.

The patterns match the logs of vLLM, SGLang, TGI, TensorRT-LLM and llama.cpp, and the progress bars (tqdm) in them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_STEPS = tuple(
    (re.compile(pattern, re.IGNORECASE), step)
    for pattern, step in (
        (r"download(ing|ed).*?(?P<done>\d{1,6})/(?P<all>\d{1,6})", "downloading weights"),
        (
            r"(loading|load|loaded)\b.*\b(shards?|weights|checkpoints?)\b.*?(?P<done>\d{1,6})/(?P<all>\d{1,6})",
            "loading weights",
        ),
        (r"captur\w+ .*graphs?.*?(?P<done>\d{1,6})/(?P<all>\d{1,6})", "capturing CUDA graphs"),
        (r"download(ing| process)|fetching .* files", "downloading weights"),
        (
            r"(starting to |begin\. )?load(ing)? (model|weight|checkpoint|safetensors)|load weight begin",
            "loading weights",
        ),
        (r"waiting for shard", "loading weights"),
        (r"captur\w+ .*graph", "capturing CUDA graphs"),
        (r"dynamo bytecode transform|compiling a graph|torch\.compile takes", "compiling"),
        (
            r"memory profiling|profile run|allocat\w+ .*kv cache|kv cache size|kv cache is allocated",
            "sizing the KV cache",
        ),
        (r"^(?!.*(disabl|skip|\btook\b)).*\bwarm(ing)?[ -]?up", "warming up"),
    )
)
"""Patterns and their steps in order of precedence; those with counts come first."""
_MAX_CHARS = 400
"""Searched characters of a line."""


def startup_step(lines: Sequence[str]) -> str:
    """Return the step of the newest line that matches, such as `loading weights 3/8`; empty if none does."""
    return next((step for line in reversed(lines) if (step := _step(line))), "")


def _step(line: str) -> str:
    for pattern, step in _STEPS:
        if (found := pattern.search(line[:_MAX_CHARS])) is not None:
            counts = found.groupdict()
            return f"{step} {counts['done']}/{counts['all']}" if counts.get("done") else step
    return ""
