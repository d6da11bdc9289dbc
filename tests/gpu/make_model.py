"""Write Llama-2-7b without its weights: the true architecture's config, and a tokenizer that decodes all its ids.

Runs in vLLM's environment: `python make_model.py FOLDER`. Sizes: the model's published config.json.
"""

import sys
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, PreTrainedTokenizerFast

VOCABULARY = 32_000


def write_tokenizer(folder: str) -> None:
    """A byte-level BPE trained on this file; ids that it never makes are words of their own, so that they decode."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=1024, special_tokens=["<unk>", "<s>", "</s>"], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator([Path(__file__).read_text(encoding="utf-8")], trainer)
    tokenizer.add_tokens([f" w{number}" for number in range(VOCABULARY - tokenizer.get_vocab_size())])
    names = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)


def main(folder: str) -> None:
    """Write the folder that `--model` takes."""
    write_tokenizer(folder)
    LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=4096,
        intermediate_size=11008,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=32,
        max_position_embeddings=4096,
        rms_norm_eps=1e-5,
        bos_token_id=1,
        eos_token_id=2,
        dtype="float16",
        architectures=["LlamaForCausalLM"],
    ).save_pretrained(folder)


if __name__ == "__main__":
    main(sys.argv[1])
