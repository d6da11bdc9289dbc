"""The message of an engine's log line without what the screen shows anyway: process, time, level and source."""

from __future__ import annotations

import re
from typing import NamedTuple

_PROCESS = r"(?:\([\w.:+\- ]{1,60}? pid=\d+(?:, ip=[\d.]+)?\) *)*"
"""`(EngineCore_DP0 pid=123)`, several in a row if one process prints what another wrote."""
_LEVEL = r"(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL)"
_DATE = r"(?:\d{4}[-/])?\d{2}[-/]\d{2}(?:[-/]\d{4})?"
_TIME = r"\d{2}:\d{2}:\d{2}(?:[.,]\d+)?(?:Z|[+-]\d{2}:?\d{2})?"
_WHEN = rf"{_DATE}[ T-]{_TIME}"
_LAYOUTS = tuple(
    re.compile(_PROCESS + layout)
    for layout in (
        rf"{_LEVEL} +{_WHEN} *(?:\[(?P<source>[\w./<>-]+(?::\d+)?)\] *)?",  # vLLM
        rf"\[{_WHEN}(?: [A-Z]+\d+)*\] *(?:{_LEVEL}: *)?(?:\[TRT-LLM\] *\[[VIWE]\] *)?",  # SGLang, TensorRT-LLM
        rf"{_WHEN} +{_LEVEL} +(?P<source>[\w:]+: (?:[\w/.-]+:\d+:)?|(?:\S+ )?[\w./-]+:\d+ --) *",  # TGI, Ray
        rf"{_WHEN} - (?P<source>[\w.]+) - {_LEVEL} - ",  # Python's logging
        r"[IWEF]\d{4} \d{2}:\d{2}:\d{2}\.\d+ +\d+ (?P<source>[\w./-]+:\d+)\] *",  # Triton
        r"\d+\.\d{2}\.\d{3}\.\d{3} [A-Z] ",  # llama.cpp
        rf"{_LEVEL}: +",  # uvicorn
        rf"{_WHEN} +{_LEVEL}[: ] *",
    )
)
_ONLY_PROCESS = re.compile(_PROCESS)
_VLLM_STATS = re.compile(
    r"Avg prompt throughput: (?P<prompt>[\d.]+) tokens/s, Avg generation throughput: (?P<output>[\d.]+) tokens/s, "
    r"Running: (?P<running>\d+) reqs?, (?:Swapped: \d+ reqs?, )?(?:Waiting|Pending): (?P<waiting>\d+) reqs?, "
    r"(?:[A-Z]+ )?KV cache usage: (?P<kv>[\d.]+) ?%"
)
_SGLANG_STATS = re.compile(
    r"Decode batch.*?#running-req: (?P<running>\d+),.*?token usage: (?P<share>[\d.]+),"
    r".*?gen throughput \(token/s\): (?P<output>[\d.]+),.*?#queue-req: (?P<waiting>\d+)"
)


class LogText(NamedTuple):
    """A log line in two parts."""

    message: str
    source: str
    """The place in the engine's code, as `core.py:83`; empty if the line has none."""


def split_prefix(text: str) -> LogText:
    """Separate a line's message from its own time, level, process and source; an unknown layout stays whole."""
    for layout in _LAYOUTS:
        match = layout.match(text)
        if match and match.end() < len(text):
            source = match.groupdict().get("source") or ""
            return LogText(text[match.end() :], source.removesuffix("--").strip(" :"))
    match = _ONLY_PROCESS.match(text)
    return LogText(text[match.end() :] if match else text, "")


def shortened_stats(message: str) -> str:
    """A line of an engine's regular statistics in few words, the most important first; other lines stay as they are."""
    match = _VLLM_STATS.search(message)
    if match:
        values = match.groupdict()
        return (
            f"running {values['running']}, waiting {values['waiting']}, KV {values['kv']} %,"
            f" out {_whole(values['output'])} tok/s, in {_whole(values['prompt'])} tok/s"
        )
    match = _SGLANG_STATS.search(message)
    if match:
        values = match.groupdict()
        kv = f"{float(values['share']) * 100:.0f}"
        return (
            f"running {values['running']}, waiting {values['waiting']}, KV {kv} %, out {_whole(values['output'])} tok/s"
        )
    return message


def _whole(value: str) -> str:
    return f"{float(value):,.0f}"
