"""Lines of vLLM's request log, as versions 0.6 to 0.32 write them."""

import pytest

from servetop.workload.shape.logged_request import LoggedEvent, LoggedOutput, LoggedRequest, UnreadableLine
from servetop.workload.shape.vllm_log import VllmLog, is_vllm_line

OLD = (
    "INFO 11-28 14:03:11 [logger.py:39] Received request cmpl-1-0: prompt: 'it\\'s, params: SamplingParams(', "
    "params: SamplingParams(n=1, max_tokens=16), prompt_token_ids: [1, 2, 3], lora_request: None."
)
PREFIX = "(APIServer pid=9) {} 11-28 14:03:{:02} [serve/.../request_logger.py:66] "
DETAILS = PREFIX.format("DEBUG", 12) + (
    'Request chatcmpl-2 details: prompt: "it\'s long", prompt_token_ids: [4, 5, 6, 7], prompt_embeds shape: None.'
)
RECEIVED = PREFIX.format("INFO", 13) + "Received request chatcmpl-2: params: SamplingParams(n=1), lora_request: None."
ADDED = "(APIServer pid=9) INFO 11-28 14:03:13 [async_llm.py:578] Added request chatcmpl-2."
OUTPUT = PREFIX.format("INFO", 14) + (
    "Generated response chatcmpl-2 (streaming complete): output: 'four words of text', finish_reason: stop"
)
DELTA = (
    PREFIX.format("INFO", 14) + "Generated response chatcmpl-2 (streaming delta): output: 'four', finish_reason: None"
)
COUNTED = PREFIX.format("DEBUG", 14) + "Generated response chatcmpl-2 details: output_token_ids: [7, 8, 9]"


def events(*lines: str) -> list[LoggedEvent]:
    log = VllmLog()
    return [event for line in lines for event in log.events(line + "\n")]


def test_a_line_of_an_older_version_has_prompt_and_token_ids() -> None:
    (found,) = events(OLD)
    assert isinstance(found, LoggedRequest)
    assert (found.prompt, found.prompt_ids, found.key) == ("it's, params: SamplingParams(", (1, 2, 3), "cmpl-1-0")
    assert (found.input_tokens, found.output_tokens, found.resolution) == (3, None, 1.0)


def test_details_precede_the_line_of_a_request_in_newer_versions() -> None:
    (found,) = events(DETAILS, RECEIVED, ADDED)
    assert isinstance(found, LoggedRequest)
    assert (found.prompt, found.prompt_ids) == ("it's long", (4, 5, 6, 7))


def test_without_details_only_the_arrival_is_known() -> None:
    (found,) = events(RECEIVED)
    assert isinstance(found, LoggedRequest)
    assert (found.prompt, found.prompt_ids, found.input_tokens) == (None, (), None)


def test_the_line_of_the_engine_counts_where_the_server_has_none() -> None:
    assert [event.key for event in events(ADDED)] == ["chatcmpl-2"]


def test_outputs_are_counted_or_estimated_and_parts_are_left_out() -> None:
    outputs = events(DELTA, OUTPUT, COUNTED)
    assert outputs == [
        LoggedOutput(key="chatcmpl-2", output_tokens=5, counted=False),
        LoggedOutput(key="chatcmpl-2", output_tokens=3, counted=True),
    ]


def test_times_run_on_into_the_next_year() -> None:
    lines = [f"INFO {day} 00:00:00 [logger.py:39] Added request {day}." for day in ("12-31", "01-01")]
    first, second = events(*lines)
    assert isinstance(first, LoggedRequest)
    assert isinstance(second, LoggedRequest)
    assert second.at - first.at == 86_400


def test_the_time_of_a_container_runtime_is_finer() -> None:
    (found,) = events(f"2026-11-28T14:03:11.25Z {ADDED}")
    assert isinstance(found, LoggedRequest)
    assert (found.at % 60, found.resolution) == (11.25, 0.0)


@pytest.mark.parametrize("params", ["None", "PoolingParams(dimensions=None)"])
def test_a_request_that_generates_nothing_is_left_out(params: str) -> None:
    assert events(DETAILS, RECEIVED.replace("SamplingParams(n=1)", params), ADDED) == []


def test_other_lines_say_nothing() -> None:
    lines = (
        "INFO 11-28 14:03:11 [api_server.py:1] Started server process [9]",
        'INFO:     127.0.0.1:1 - "POST /v1/completions HTTP/1.1" 200 OK',
        'DEBUG 11-28 14:03:11 [logger.py:1] Request a JSON body: {"prompt": "[x] Added request b."}',
        "",
    )
    assert events(*lines) == []
    assert [is_vllm_line(line) for line in lines] == [True, False, True, False]


@pytest.mark.parametrize("line", [OLD[:90], OLD.replace("11-28 14:03:11", "sometime"), OLD.replace("11-28", "13-32")])
def test_a_cut_line_is_unreadable(line: str) -> None:
    with pytest.raises(UnreadableLine):
        events(line)
