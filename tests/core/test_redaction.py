"""Text that looks like a secret is replaced, and all other text is kept."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.core.text.redaction import Redactor


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("vllm serve m --api-key abc123 --port 80", "vllm serve m --api-key [redacted] --port 80"),
        ("--api-key=abc", "--api-key=[redacted]"),
        ("Authorization: Bearer xyz", "Authorization: Bearer [redacted]"),
        ("args: {'api_key': ['abc'], 'model': 'x'}", "args: {'api_key': [redacted], 'model': 'x'}"),
        ("HF_TOKEN=abc OPENAI_API_KEY=def", "HF_TOKEN=[redacted] OPENAI_API_KEY=[redacted]"),
        ("downloading with hf_abcdefghijkl", "downloading with [redacted]"),
        ("key sk-proj-abcdefghij is wrong", "key [redacted] is wrong"),
        ("http://user:pass@host:80/x?api_key=1&b=2", "http://[redacted]@host:80/x?api_key=[redacted]&b=2"),
        (
            "s3://b/m?X-Amz-Credential=AK%2F1&X-Amz-Date=20&X-Amz-Signature=0f1e#x",
            "s3://b/m?X-Amz-Credential=[redacted]&X-Amz-Date=20&X-Amz-Signature=[redacted]#x",
        ),
        (
            "https://c/m?Expires=1&Signature=a~b&Key-Pair-Id=K",
            "https://c/m?Expires=1&Signature=[redacted]&Key-Pair-Id=K",
        ),
        ("https://a.blob/m?sv=2&sig=ab%3D", "https://a.blob/m?sv=2&sig=[redacted]"),
        ("MYKEY=abc", "MYKEY=[redacted]"),
    ],
)
def test_secrets_are_replaced(text: str, redacted: str) -> None:
    assert Redactor().text(text) == redacted


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens=5 tokenizer: llama",
        "EOS token 2, special token: <s>",
        "generated 300 tokens/s",
        "api_key_env: MY_KEY",
        "api_key=None",
        "http://gpu7:8000/v1/models",
        "the disk-based cache and the task-queue-length",
    ],
)
def test_innocent_text_is_left_alone(text: str) -> None:
    assert Redactor().text(text) == text


def test_a_known_secret_is_replaced_wherever_it_stands_unless_it_is_too_short_to_tell() -> None:
    assert Redactor(["open-sesame", "no"]).text("say open-sesame now") == "say [redacted] now"


def test_data_is_searched_to_its_depth() -> None:
    data = {
        "extra_args": ("--hf-token", "x", "--max-tokens", "5"),
        "headers": {"Authorization": "Basic abc", "X-Api-Key": "k"},
        "list": [{"password": "p"}, 3, None, True],
        "api_key_env": "MY_KEY",
    }
    assert Redactor().data(data) == {
        "extra_args": ["--hf-token", "[redacted]", "--max-tokens", "5"],
        "headers": {"Authorization": "[redacted]", "X-Api-Key": "[redacted]"},
        "list": [{"password": "[redacted]"}, 3, None, True],
        "api_key_env": "MY_KEY",
    }


def test_the_variable_of_a_header_is_no_secret_but_a_known_value_is() -> None:
    words = ("--header-env", "X-Api-Key=GW_KEY", "--metrics-header-env", "api-key=open-sesame")
    assert Redactor(["open-sesame"]).data(words) == [*words[:3], "api-key=[redacted]"]


@given(st.text(st.characters(categories=["L", "N"], max_codepoint=0x7F), min_size=8, max_size=40))
def test_what_follows_api_key_never_survives(secret: str) -> None:
    assert secret not in Redactor().text(f"--api-key {secret} --x").replace("[redacted]", "")


@given(st.text())
def test_any_text_can_be_redacted_twice_with_the_same_result(text: str) -> None:
    once = Redactor().text(text)
    assert Redactor().text(once) == once
