"""Conversation scripts: dataset formats, malformed rows, random conversations, and seeds."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.core.config import WorkloadConfig
from servetop.core.errors import UsageError
from servetop.workload.build import prompts_for
from servetop.workload.datasets.catalogue import texts_of
from servetop.workload.datasets.conversation_rows import turns_row
from servetop.workload.datasets.rows import BadRow, LeftOut, SkippedRows
from servetop.workload.prompts.conversation_scripts import TurnPrompt, next_turn
from servetop.workload.token_estimate import estimated_tokens
from servetop.workload.validation import check_fits, check_load, resolve_workload

MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "One?"},
    {"role": "assistant", "content": "x" * 40},
    {"role": "user", "content": "Two?"},
]
SHAREGPT = [
    {"from": "gpt", "value": "cut off before"},
    {"from": "human", "value": "One?"},
    {"from": "gpt", "value": "y" * 20},
    {"from": "human", "value": "Two?"},
    {"from": "gpt", "value": ""},
]


def first(config: WorkloadConfig, count: int, *, seed: int = 5) -> list[TurnPrompt]:
    prompts = list(itertools.islice(prompts_for(config, (seed, 0)).prompts(), count))
    assert all(isinstance(each, TurnPrompt) for each in prompts)
    return prompts  # type: ignore[return-value]


def file_of(path: Path, *rows: object, array: bool = False) -> WorkloadConfig:
    path.write_text(json.dumps(rows, indent=1) if array else "\n".join(map(json.dumps, rows)))
    return WorkloadConfig(dataset="conversations", dataset_path=str(path), endpoint="chat")


def test_mt_bench_has_eighty_conversations_of_two_turns() -> None:
    config, replay = resolve_workload(WorkloadConfig(dataset="mtbench", output_len=64))
    assert replay is None
    prompts = first(config, 81)
    assert {len(each.script.turns) for each in prompts} == {2}
    assert prompts[0].text.startswith("Compose an engaging travel blog post about a recent trip to Hawaii")
    assert prompts[0].script.turns[1].question == (
        "Rewrite your previous response. Start every sentence with the letter A."
    )
    assert prompts[80].text == prompts[0].text
    assert {turn.output_tokens for each in prompts for turn in each.script.turns} == {64}
    assert [len(each.script.turns) for each in first(WorkloadConfig(dataset="mtbench", num_turns="1"), 3)] == [1] * 3


@pytest.mark.parametrize("array", [False, True])
def test_messages_turns_and_sharegpts_conversations_are_read_from_lines_and_arrays(tmp_path: Path, array: bool) -> None:
    rows = ({"messages": MESSAGES}, {"turns": ["One?", "Two?"]}, {"id": "a", "conversations": SHAREGPT})
    config, _ = resolve_workload(file_of(tmp_path / "talk", *rows, array=array))
    prompts = first(config, 3)
    assert [[turn.question for turn in each.script.turns] for each in prompts] == [["One?", "Two?"]] * 3
    assert [[turn.output_tokens for turn in each.script.turns] for each in prompts] == [[10, 128], [128] * 2, [5, 1]]
    assert [each.messages for each in prompts] == [(("system", "Be brief."),), (), ()]


def test_a_text_dialect_puts_the_system_prompt_before_the_first_question(tmp_path: Path) -> None:
    config = file_of(tmp_path / "talk", {"messages": MESSAGES})
    (opening,) = first(WorkloadConfig(dataset="conversations", dataset_path=config.dataset_path), 1)
    assert (opening.text, opening.messages) == ("Be brief.\n\nOne?", ())
    following = next_turn(opening, "It is one.", history_tokens=20, conversation=9)
    assert following.text == "Be brief.\n\nOne?It is one.\n\nTwo?"
    assert (following.input_tokens, following.turn, following.conversation, following.last) == (21, 2, 9, True)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ('{"turns": {}}', "line 2, column 'turns': expected a list of questions or messages, found {}"),
        ('{"turns": ["One?", " "]}', "line 2, column 'turns': expected a question, found ' '"),
        ('{"prompt": "One?"}', "line 2, no column 'messages or turns or conversations': it has prompt"),
        (
            '{"messages": [{"role": "judge", "content": "x"}]}',
            "messages of system, user, assistant, tool, found 'judge'",
        ),
        ('{"messages": [{"role": "user", "content": 5}]}', "expected the text of a message, found 5"),
        (
            '{"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}',
            "parts of type text, found 'image_url'",
        ),
        ('{"turns": ["One?"', "line 2, not a complete JSON value"),
        ("5", "line 2, expected an object with a conversation, found '5'"),
    ],
)
def test_a_malformed_conversation_is_rejected_or_skipped_and_counted(tmp_path: Path, row: str, message: str) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_text('{"turns": ["Fine?"]}\n' + row + '\n{"turns": ["Fine too?"]}\n')
    config = WorkloadConfig(dataset="conversations", dataset_path=str(path))
    with pytest.raises(UsageError) as refused:
        resolve_workload(config)
    assert message in str(refused.value)
    assert str(refused.value).endswith("fix it, or add --skip-bad-rows")
    texts, skipped = texts_of(config), SkippedRows()
    assert texts is not None
    assert [each.turns[0].question for each in texts.rows(skipped)] == ["Fine?", "Fine too?"]
    assert skipped.skipped == 1


CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
AGENT = [
    {"role": "developer", "content": "Use tools."},
    {"role": "user", "content": [{"type": "text", "text": "Find it"}, {"type": "text", "text": "please"}]},
    {"role": "assistant", "content": None, "tool_calls": [CALL, CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "42"},
    {"role": "tool", "tool_call_id": "c2", "content": "43"},
    {"from": "model", "value": "It is 42 or 43"},
    {"role": "User", "content": "And then?"},
]


def test_results_of_tools_are_questions_and_calls_are_answers() -> None:
    row = turns_row(1, {"messages": AGENT})
    assert row.text == "Use tools."
    assert [turn.question for turn in row.turns] == ["Find it\nplease", "42\n\n43", "And then?"]
    calls = estimated_tokens(json.dumps([CALL, CALL]))
    assert [turn.output_tokens for turn in row.turns] == [calls, 4, None]


def test_parts_of_anthropics_messages_are_calls_and_results_of_tools() -> None:
    call = {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": "it"}}
    results = [{"type": "tool_result", "tool_use_id": "c1", "content": each} for each in ("42", [{"text": "43"}])]
    messages = [
        {"role": "human", "content": "Find it"},
        {"role": "ai", "content": [{"type": "thinking", "thinking": "Where?"}, call]},
        {"role": "user", "content": results},
        {"role": "ai", "content": "It is 42 or 43"},
    ]
    row = turns_row(1, {"messages": messages})
    assert [turn.question for turn in row.turns] == ["Find it", "42\n43"]
    assert row.turns[0].output_tokens == estimated_tokens(json.dumps({"name": "look", "input": {"at": "it"}}))


def test_conversations_in_which_nobody_asks_are_left_out_and_counted(tmp_path: Path) -> None:
    config = file_of(tmp_path / "talk", {"turns": ["Fine?"]}, {"turns": []}, {"messages": [AGENT[2]]})
    texts, skipped = texts_of(config), SkippedRows()
    assert texts is not None
    assert len(list(texts.rows())) == len(list(texts.rows(skipped))) == 1
    assert skipped.texts() == ["2 rows of the dataset were left out: a conversation without a question"]


@given(st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=4)))
def test_any_column_value_is_a_conversation_or_a_bad_row(value: Any) -> None:
    try:
        row = turns_row(1, {"messages": value})
    except (BadRow, LeftOut):
        return
    assert row.turns
    assert all(turn.question.strip() for turn in row.turns)


def test_random_conversations_have_the_requested_turns_with_drawn_lengths() -> None:
    config = WorkloadConfig(num_turns="uniform:min=2,max=4", lengths="uniform:ratio=0.5", input_len=20, output_len=10)
    prompts = first(config, 200)
    assert {len(each.script.turns) for each in prompts} == {2, 3, 4}
    turns = [turn for each in prompts for turn in each.script.turns]
    assert {len(turn.question.split()) for turn in turns} == set(range(10, 31))
    assert {turn.output_tokens for turn in turns} == set(range(5, 16))
    assert prompts == first(config, 200)
    assert prompts != first(config, 200, seed=6)
    fixed = first(WorkloadConfig(num_turns="3", prefix_len=50, input_len=5), 3)
    assert [[len(turn.question.split()) for turn in each.script.turns] for each in fixed] == [[55, 5, 5]] * 3
    assert len({tuple(each.text.split()[:50]) for each in fixed}) == 1


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"num_turns": "0"}, "--num-turns"),
        ({"num_turns": "2.5"}, "--num-turns 2.5: give integers from 1"),
        ({"num_turns": "uniform:min=4,max=2"}, "--num-turns uniform:min=4,max=2: give integers from 1"),
        ({"num_turns": "uniform:min=4"}, "give integers from 1"),
        ({"num_turns": "many"}, "--num-turns: unknown 'many'"),
        ({"num_turns": "2", "dataset": "sonnet"}, "--num-turns is for conversations, not for sonnet"),
        ({"dataset": "mtbench", "n": 2}, "--n: a conversation continues with one completion"),
        ({"dataset": "conversations"}, "--dataset-name conversations reads a file: give --dataset-path"),
    ],
)
def test_invalid_conversation_options_are_rejected(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        resolve_workload(WorkloadConfig(**fields))
    assert message in str(refused.value)


def test_conversations_longer_than_the_context_are_rejected_unless_clipped() -> None:
    config = WorkloadConfig(num_turns="uniform:min=1,max=5", input_len=100, output_len=20)
    check_fits(config, 600)
    with pytest.raises(UsageError, match=r"each conversation needs 500 \+ 100 tokens, but the model.s context has 599"):
        check_fits(config, 599)
    check_fits(WorkloadConfig(num_turns="5", input_len=100, output_len=20, clip_lengths=True), 599)
    check_fits(WorkloadConfig(dataset="mtbench", input_len=9999), 4096)


def test_conversations_of_open_loops_have_think_times() -> None:
    from servetop.core.config import StageConfig

    stages = [StageConfig(request_rate=4.0, duration=5.0)]
    check_load(WorkloadConfig(dataset="mtbench", think_time="2"), stages)
    with pytest.raises(UsageError, match="--think-time is for closed loops and conversations"):
        check_load(WorkloadConfig(think_time="2"), stages)
