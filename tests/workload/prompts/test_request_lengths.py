"""The lengths of a prediction are those of the prompts that a run sends."""

import itertools
from typing import Any

import pytest

from servetop.core.config import WorkloadConfig
from servetop.core.errors import UsageError
from servetop.workload.build import prompts_for
from servetop.workload.prompts.conversation_scripts import TurnPrompt
from servetop.workload.prompts.lengths import lengths_for
from servetop.workload.request_lengths import RequestLengths, request_lengths

SEED = (4, 0)


def drawn(count: int = 60, *, max_model_len: int | None = None, **workload: Any) -> list[RequestLengths]:
    source = request_lengths(WorkloadConfig(**workload), SEED, max_model_len=max_model_len)
    return list(itertools.islice(source, count))


@pytest.mark.parametrize(
    "workload",
    [
        {"input_len": 20, "output_len": 9},
        {"lengths": "lognormal:input_mean=60,output_mean=30"},
        {"lengths": "sharegpt", "prefix_len": 16, "num_prefixes": 5},
        {"dataset": "azure-conv"},
        {"dataset": "azure-conv", "lengths": "normal:input_mean=50"},
        {"dataset": "sonnet", "range_ratio": 0.5, "input_len": 40},
        {"dataset": "prefix_repetition", "input_len": 5},
        {"lengths": "zipf", "clip_lengths": True, "input_len": 200, "output_len": 200},
    ],
)
def test_each_request_is_as_long_as_the_prompt_that_a_run_sends(workload: dict[str, Any]) -> None:
    prompts = prompts_for(WorkloadConfig(**workload), SEED, max_model_len=300).prompts()
    sent = [(prompt.input_tokens, prompt.output_tokens) for prompt in itertools.islice(prompts, 60)]
    assert [(each.prompt_tokens, each.max_tokens) for each in drawn(max_model_len=300, **workload)] == sent


def test_requests_with_the_same_prefix_share_its_identity() -> None:
    workload: dict[str, Any] = {"input_len": 3, "prefix_len": 8, "num_prefixes": 4}
    prompts = itertools.islice(prompts_for(WorkloadConfig(**workload), SEED).prompts(), 60)
    prefixes = [(prompt.token_ids or ())[:8] for prompt in prompts]
    identities = [each.shared[0][0] for each in drawn(**workload)]
    assert len(set(identities)) == 4
    assert len(set(zip(prefixes, identities, strict=True))) == 4


def test_the_turns_of_a_conversation_have_the_lengths_of_its_script() -> None:
    workload: dict[str, Any] = {"dataset": "mtbench", "output_len": 40}
    prompts = itertools.islice(prompts_for(WorkloadConfig(**workload), SEED).prompts(), 20)
    turns = [len(prompt.script.turns) - 1 for prompt in prompts if isinstance(prompt, TurnPrompt)]
    found = drawn(20, **workload)
    assert [len(each.turns) for each in found] == turns
    assert all(output == 40 for each in found for _, output in each.turns)


def test_a_request_allows_the_output_limit_and_is_expected_to_use_less() -> None:
    lengths = "sharegpt:sample=50,output_mean=200,output_limit=900"
    found = drawn(50, lengths=lengths, ignore_eos=False)
    assert {each.max_tokens for each in found} == {900}
    assert sum(each.output_tokens for each in found) / 50 == pytest.approx(200, rel=0.01)
    sent = itertools.islice(lengths_for(WorkloadConfig(lengths=lengths, ignore_eos=False), SEED).pairs(), 50)
    assert {output for _, output in sent} == {900}
    with pytest.raises(UsageError, match="--no-ignore-eos"):
        lengths_for(WorkloadConfig(lengths=lengths), SEED)


def test_blocks_of_a_trace_are_shared(tmp_path: Any) -> None:
    file = tmp_path / "trace.jsonl"
    row = '{"timestamp": %d, "input_length": 600, "output_length": 5, "hash_ids": [7, %d]}\n'
    file.write_text("".join(row % (at, at) for at in range(3)))
    found = drawn(3, dataset="mooncake", dataset_path=str(file))
    assert len({each.shared[0] for each in found}) == 1
    assert len({each.shared[1] for each in found}) == 3
    assert {tokens for each in found for _, tokens in each.shared} == {512}
