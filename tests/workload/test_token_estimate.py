"""Estimates of token counts for every script, held against counts of Mistral's tokenizers."""

import json

import pytest

from servetop.workload.token_estimate import estimated_tokens

RECORDS = json.dumps([{"id": i, "name": f"user{i}", "ok": True, "v": [1.5 * i, 2]} for i in range(40)])
COUNTED = {
    "Explain in simple terms what machine learning is, and how it is used in medicine.": (18, 18),
    RECORDS: (1255, 1294),
    "日常生活中,人们常常需要处理各种各样的信息。": (19, 23),
    "日本語のとても長い質問です。答えてください。": (15, 25),
    "기계 학습이 무엇인지 간단하게 설명해 주세요.": (15, 28),
    "Объясните, пожалуйста, простыми словами, что такое машинное обучение.": (24, 29),
    "😀🎉🚀💯🙏": (6, 20),
}
"""Texts with their counts by vocabularies of 131,072 and of 32,768 tokens, the smaller first."""


@pytest.mark.parametrize("text", COUNTED)
def test_an_estimate_is_near_the_counts_of_tokenizers(text: str) -> None:
    least, most = COUNTED[text]
    assert 0.7 * least <= estimated_tokens(text) <= 1.3 * most


@pytest.mark.parametrize(("text", "tokens"), [("", 1), ("a", 1), ("four", 1), ("words", 2), ("z" * 400, 100)])
def test_four_letters_are_a_token(text: str, tokens: int) -> None:
    assert estimated_tokens(text) == tokens


def test_any_text_has_an_estimate() -> None:
    assert estimated_tokens("\ud83d") == 1
