"""Tokenizer files of each supported kind: counting, exact lengths, and invalid files."""

import io
import itertools
from pathlib import Path

import pytest

from servetop.core.config import WorkloadConfig
from servetop.core.errors import UsageError
from servetop.workload.build import prompts_for
from servetop.workload.prompts.dataset_prompts import corpus_text
from servetop.workload.prompts.local_tokenizer import fitted, load_tokenizer
from servetop.workload.validation import resolve_workload
from tests.workload.tokenizer_files import write_ranks


@pytest.fixture
def ranks(tmp_path: Path) -> Path:
    return write_ranks(tmp_path)


@pytest.fixture
def json_file(tmp_path: Path) -> Path:
    """A Hugging Face byte-level tokenizer trained on the sonnets, with two special tokens."""
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.ByteLevelBPETokenizer()
    made.train_from_iterator([corpus_text("sonnet")], vocab_size=600, special_tokens=["<s>", "</s>"])
    made.post_processor = tokenizers.processors.BertProcessing(("</s>", 1), ("<s>", 0))
    file = tmp_path / "tokenizer.json"
    made.save(str(file))
    return file


@pytest.fixture
def sentencepiece_file(tmp_path: Path) -> Path:
    sentencepiece = pytest.importorskip("sentencepiece")
    model = io.BytesIO()
    lines = corpus_text("sonnet").splitlines()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, vocab_size=400, minloglevel=2
    )
    file = tmp_path / "tokenizer.model"
    file.write_bytes(model.getvalue())
    return file


@pytest.fixture(params=["ranks", "json_file", "sentencepiece_file"])
def file(request: pytest.FixtureRequest) -> Path:
    path: Path = request.getfixturevalue(request.param)
    return path


def test_a_text_can_be_cut_or_extended_to_any_length(file: Path) -> None:
    tokenizer = load_tokenizer(str(file))
    text = corpus_text("sonnet")[:400]
    for wanted in (1, 7, 50, 300):
        found, tokens = fitted(text, wanted, tokenizer)
        assert tokens == tokenizer.count(found) == wanted


def test_merges_follow_the_ranks_of_the_file(ranks: Path) -> None:
    tokenizer = load_tokenizer(str(ranks))
    assert list(tokenizer.encode("on the a")) == [ord("o"), ord("n"), 258, 259]
    assert tokenizer.decode([258, 259]) == " the a"


def test_special_tokens_are_not_counted(json_file: Path) -> None:
    tokenizer = load_tokenizer(str(json_file))
    assert 0 < tokenizer.count("summer") <= len("summer")
    assert tokenizer.count("") == 0


def test_a_folder_means_the_tokenizer_in_it(json_file: Path) -> None:
    assert load_tokenizer(str(json_file.parent)).count("summer") == load_tokenizer(str(json_file)).count("summer")


@pytest.mark.parametrize("dataset", ["random", "sonnet"])
def test_chat_prompts_have_exactly_the_requested_length(ranks: Path, dataset: str) -> None:
    tokenizer = load_tokenizer(str(ranks))
    workload = WorkloadConfig(endpoint="chat", dataset=dataset, input_len=40, tokenizer=str(ranks))
    for prompt in itertools.islice(prompts_for(workload, (1,)).prompts(), 20):
        assert prompt.counted
        assert prompt.input_tokens == tokenizer.count(prompt.text) == 40


def test_dataset_prompts_are_counted_and_not_changed(ranks: Path, tmp_path: Path) -> None:
    table = tmp_path / "prompts.jsonl"
    table.write_text('{"prompt": "on the a", "output_tokens": 3}\n')
    workload = WorkloadConfig(dataset="custom", dataset_path=str(table), tokenizer=str(ranks))
    prompt = next(prompts_for(workload, (1,)).prompts())
    assert (prompt.text, prompt.input_tokens, prompt.counted) == ("on the a", 4, True)


def test_random_token_ids_do_not_depend_on_the_tokenizer(ranks: Path) -> None:
    with_it, without = (next(prompts_for(WorkloadConfig(tokenizer=name), (1,)).prompts()) for name in (str(ranks), ""))
    assert with_it == without


@pytest.mark.parametrize("content", [b"", b"{}", b'{"a"', b"\x00\x01nothing", b"aGk= 0\nbroken"])
def test_an_invalid_tokenizer_file_is_rejected_in_one_line(tmp_path: Path, content: bytes) -> None:
    for library in ("tokenizers", "tiktoken", "sentencepiece"):
        pytest.importorskip(library)
    file = tmp_path / "some.file"
    file.write_bytes(content)
    with pytest.raises(UsageError, match=r"^--tokenizer .*some\.file .*is it a tokenizer file\?$"):
        resolve_workload(WorkloadConfig(tokenizer=str(file)))


def test_a_missing_tokenizer_file_is_reported_as_missing() -> None:
    with pytest.raises(UsageError, match="no such file"):
        load_tokenizer("/nowhere/tokenizer.json")


def test_an_unknown_encoding_is_rejected_with_the_known_ones() -> None:
    pytest.importorskip("tiktoken")
    with pytest.raises(UsageError, match=r"neither a file nor an encoding of tiktoken \(.*cl100k_base"):
        load_tokenizer("cl200k")
