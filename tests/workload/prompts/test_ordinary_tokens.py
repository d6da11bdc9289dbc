"""Random prompts consist of ordinary tokens of the model."""

import itertools

import pytest

from servetop.core.config import WorkloadConfig
from servetop.workload.build import EngineTraits, prompts_for
from servetop.workload.prompts.ordinary_tokens import UNCHECKED_IDS, draws_token_ids, ordinary_ids, ordinary_text
from servetop.workload.prompts.prompt_salt import salted


def test_the_tokens_that_a_tokenizer_puts_around_a_text_are_not_ordinary() -> None:
    assert ordinary_ids((1, 900, 700, 900, 700, 800, 2)) == (700, 800, 900)
    assert ordinary_ids((900, 700, 900)) == (700, 900)
    assert ordinary_ids(()) == ()
    assert len(set(ordinary_text().split())) > 1000


@pytest.mark.parametrize("fields", [{}, {"prefix_len": 9}, {"dataset": "azure-conv"}, {"cache_hit_rate": 0.5}])
def test_prompts_and_salts_are_drawn_from_the_ids_of_the_model(fields: dict[str, object]) -> None:
    workload, ids = WorkloadConfig(**fields), tuple(range(20_000, 20_500, 5))  # type: ignore[arg-type]
    assert draws_token_ids(workload)
    source = prompts_for(workload, (1, 0), engine=EngineTraits(token_ids=ids))
    for prompt in itertools.islice(source.prompts(), 5):
        assert set(prompt.token_ids or ()) <= set(ids)
        changed = salted(prompt, 7, ids).token_ids or ()
        assert set(changed) <= set(ids)
        assert all(new != old for new, old in zip(changed[:4], prompt.token_ids or (), strict=False))


def test_without_a_known_tokenizer_ids_are_beyond_mistrals_special_tokens() -> None:
    prompt = next(iter(prompts_for(WorkloadConfig(input_len=5000), (1, 0)).prompts()))
    assert set(prompt.token_ids or ()) <= set(UNCHECKED_IDS)
    assert min(UNCHECKED_IDS) >= 1000


@pytest.mark.parametrize(
    "fields", [{"endpoint": "chat"}, {"num_turns": "2"}, {"dataset": "sonnet"}, {"dataset": "mtbench"}]
)
def test_prompts_of_text_draw_no_token_ids(fields: dict[str, object]) -> None:
    assert not draws_token_ids(WorkloadConfig(**fields))  # type: ignore[arg-type]
