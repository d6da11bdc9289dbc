"""Salts: prompts of equal length whose beginnings no other salt has, and which still share what they shared."""

from __future__ import annotations

import itertools

from servetop.core.config import WorkloadConfig
from servetop.core.interfaces.dialect import Prompt
from servetop.workload.build import prompts_for
from servetop.workload.prompts.conversation_scripts import TurnPrompt, next_turn
from servetop.workload.prompts.ordinary_tokens import UNCHECKED_IDS
from servetop.workload.prompts.prompt_salt import salted

SALTS = range(1, 200)


def first(workload: WorkloadConfig) -> Prompt:
    return next(iter(prompts_for(workload, (1, 0)).prompts()))


def test_salted_token_ids_have_the_same_number_and_another_beginning_with_each_salt() -> None:
    prompt = first(WorkloadConfig(input_len=40))
    ids = [salted(prompt, salt).token_ids or () for salt in SALTS]
    assert len({each[:16] for each in ids}) == len(SALTS)
    assert all(len(each) == 40 and each[4:] == (prompt.token_ids or ())[4:] for each in ids)
    assert all(token in UNCHECKED_IDS and each[0] != (prompt.token_ids or ())[0] for each in ids for token in each)


def test_prompts_share_with_a_salt_exactly_what_they_share_without() -> None:
    workload = WorkloadConfig(input_len=8, prefix_len=20, num_prefixes=2)
    prompts = list(itertools.islice(prompts_for(workload, (1, 0)).prompts(), 12))

    def beginnings(prompts: list[Prompt]) -> list[int]:
        heads = [(prompt.token_ids or ())[:20] for prompt in prompts]
        return [heads.index(head) for head in heads]

    assert beginnings([salted(prompt, 7) for prompt in prompts]) == beginnings(prompts)
    assert len(set(beginnings(prompts))) == 2


def test_salted_words_are_common_words_of_the_same_length() -> None:
    prompt = first(WorkloadConfig(input_len=40, endpoint="chat"))
    texts = [salted(prompt, salt).text for salt in SALTS]
    assert len({text[:40] for text in texts}) == len(SALTS)
    words = prompt.text.split()
    assert all([len(word) for word in text.split()] == [len(word) for word in words] for text in texts)
    assert all(text.split()[8:] == words[8:] for text in texts)


def test_any_text_gets_another_beginning_of_the_same_length() -> None:
    for text in ("  Explain\nthe photoelectric effect.", "日本語のとても長い質問です。答えてください。"):
        prompt = Prompt(text=text, input_tokens=9, output_tokens=1)
        changed = {salted(prompt, salt).text for salt in range(12)}
        assert text not in changed
        assert {len(each) for each in changed} == {len(text)}
        assert len(changed) > 2


def test_the_turns_of_a_conversation_keep_the_salt_of_the_first() -> None:
    scripts = []
    for endpoint in ("completions", "chat"):
        plain = first(WorkloadConfig(input_len=12, num_turns="2", endpoint=endpoint))
        assert isinstance(plain, TurnPrompt)
        scripts.append(plain.script)
        turn = salted(plain, 3)
        following = next_turn(turn, "an answer", history_tokens=20, conversation=0)
        whole = following.text if endpoint == "completions" else following.messages[0][1]
        assert whole.startswith(turn.text)
        assert turn.text != plain.text
    with_system = TurnPrompt(
        text="a", messages=(("system", "you help people"),), input_tokens=3, output_tokens=1, script=scripts[0]
    )
    assert salted(with_system, 3).text == "a"
    assert salted(with_system, 3).messages[0][1] != "you help people"
