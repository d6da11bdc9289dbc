"""Secrets given to a run are recognised wherever they appear."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from servetop.core.config import EngineConfig, RunConfig, WorkloadConfig
from servetop.core.text.known_secrets import engine_secrets, redactor_of, redactor_of_command
from servetop.core.text.redaction import Redactor

ROOT = Path(__file__).parents[2]
PACKAGES = ("analysis", "cli", "core", "engines", "loadgen", "recordings", "run", "simulator", "workload")
"""Those whose sentences reach a recording or a terminal through a redactor."""


@pytest.mark.parametrize(
    ("headers", "output", "kept"),
    [
        ({"X-Tenant": "blue-7531"}, "tenant blue-7531 unknown", "tenant [redacted] unknown"),
        ({"Authorization": "Bearer abc123xyz"}, "abc123xyz expired", "[redacted] expired"),
        ({"Cookie": "sid=abc123xyz; theme=dark"}, "abc123xyz in the dark", "[redacted] in the dark"),
        ({"X-Mode": "streaming"}, "streaming is slow", "streaming is slow"),
        ({"X-Api-Key": "supersecret"}, "supersecret is refused", "[redacted] is refused"),
        ({"Accept": "application/json"}, "not application/json", "not application/json"),
    ],
)
def test_a_headers_value_is_known_unless_it_is_a_plain_word(headers: dict[str, str], output: str, kept: str) -> None:
    config = RunConfig(workload=WorkloadConfig(headers=headers))
    assert redactor_of(config, {}).text(output) == kept


def test_a_secret_is_known_in_the_forms_that_urls_and_json_give_it() -> None:
    config = RunConfig(engine=EngineConfig(extra_args=("--admin-password", 'p@ss "w/rd')))
    redactor = redactor_of(config, {})
    assert redactor.text('p@ss "w/rd p%40ss%20%22w%2Frd p@ss \\"w/rd') == "[redacted] [redacted] [redacted]"


def test_the_variables_that_a_configuration_names_are_secret_whatever_their_names() -> None:
    workload = WorkloadConfig(header_env={"X-Auth": "ODD"})
    config = RunConfig(engine=EngineConfig(api_key_env="STRANGE"), workload=workload)
    environ = {"ODD": "value-one", "STRANGE": "value-two", "HOME": "/home/value"}
    assert redactor_of(config, environ).text("value-one value-two /home/value") == "[redacted] [redacted] /home/value"


def test_an_engines_log_shows_none_of_its_arguments_secrets() -> None:
    config = EngineConfig(extra_args=("--ssl-keyfile-password", "hunter2222"))
    assert engine_secrets(config, {"HF_TOKEN": "abcdef123", "A_KEY": "short"}) == ["hunter2222", "abcdef123"]


def test_a_complaint_about_a_command_line_does_not_repeat_its_secrets() -> None:
    argv = [
        "--header",
        "X-Auth: hunter2222",
        "--url",
        "http://me:correct-horse@gpu7",
        "--extra-body",
        '{"token": "abc-123-d"}',
    ]
    output = "hunter2222, correct-horse and abc-123-d"
    assert redactor_of_command(argv, {}).sentence(output) == "[redacted], [redacted] and [redacted]"


def test_a_secret_that_is_not_unicode_is_removed() -> None:
    argv, environ = ["--header", "X-Key: a\udcffbcdefgh"], {"MY_TOKEN": "x\ud83dyzxyzxyz"}
    output = "a\udcffbcdefgh and x\ud83dyzxyzxyz"
    assert redactor_of_command(argv, environ).sentence(output) == "[redacted] and [redacted]"


def sentences() -> Iterator[str]:
    """Every text with a blank in it in servetop's source, with a word in place of what is filled in."""
    files = [file for package in PACKAGES for file in sorted((ROOT / package / "servetop").rglob("*.py"))]
    for node in (node for file in files for node in ast.walk(ast.parse(file.read_text()))):
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "thing" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        if " " in text:
            yield text


def test_no_sentence_of_servetops_own_is_garbled() -> None:
    garbled = [text for text in sentences() if Redactor().sentence(text) != text]
    assert [text for text in garbled if text != "Bearer thing" and "(?<=" not in text] == []


def test_the_advice_about_a_secret_option_comes_through() -> None:
    advice = "a secret after --api-key would be recorded: export it for the engine (VLLM_API_KEY, HF_TOKEN) instead"
    assert Redactor().sentence(advice) == advice


@pytest.mark.parametrize(
    "sentence",
    [
        "b.csv, line 3, column 'Response tokens': expected a whole number of tokens, 1 or more, found '0'",
        "line 3, column 'token': expected a prompt, found None",
        "no column 'prompt': it has api_key, token: choose with --dataset-column api_key",
        'line 2, column "secret": expected a value',
    ],
)
def test_the_names_of_columns_do_not_eat_the_words_after_them(sentence: str) -> None:
    assert Redactor().sentence(sentence) == sentence


@pytest.mark.parametrize(
    "quoted", ["{'token': 'Swordfish'}", '{"api_key": "Swordfish"}', "'token': Sw0rdfish", "key=Swordfish1"]
)
def test_secrets_that_a_sentence_quotes_are_redacted(quoted: str) -> None:
    assert "fish" not in Redactor().sentence(f"the server said {quoted}")
