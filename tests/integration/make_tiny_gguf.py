"""Write a tiny random Llama as one GGUF file, with a byte-level tokenizer of its own.

Needs `gguf` and `tokenizers`: `python make_tiny_gguf.py tiny.gguf`.
"""

import json
import sys

import gguf
import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

CORPUS = ["the quick brown fox jumps over the lazy dog "] * 50 + ["servetop watches a serving engine under load "] * 50
SPECIAL = ["<s>", "</s>", "<unk>"]
HIDDEN, INNER, LAYERS, HEADS, CONTEXT = 128, 256, 2, 4, 4096


def trained_vocabulary() -> tuple[list[str], list[str]]:
    """The tokens by number, and the merges (two halves around one space), of a BPE over a few sentences."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=1024, special_tokens=SPECIAL, initial_alphabet=alphabet)
    with open(__file__, encoding="utf-8") as source:
        tokenizer.train_from_iterator([source.read()] * 10 + CORPUS, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
    return sorted(model["vocab"], key=model["vocab"].__getitem__), merges


def describe(writer: gguf.GGUFWriter, tokens: list[str], merges: list[str]) -> None:
    """The keys that llama.cpp wants of a Llama and of a byte-level tokenizer."""
    writer.add_name("tiny-random")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(HIDDEN // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_file_type(1)  # mostly 16-bit floats
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    kinds = {True: gguf.TokenType.CONTROL, False: gguf.TokenType.NORMAL}
    writer.add_token_types([kinds[token in SPECIAL] for token in tokens])
    writer.add_token_merges(merges)
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_unk_token_id(2)
    writer.add_add_bos_token(False)
    writer.add_chat_template("{% for m in messages %}{{m['content']}}{% endfor %}")


def add_weights(writer: gguf.GGUFWriter, size: int) -> None:
    """The same random weights each time; `size` is the vocabulary's."""
    random = np.random.default_rng(0)
    ones = np.ones(HIDDEN, np.float32)
    shapes = {"token_embd": (size, HIDDEN), "output": (size, HIDDEN)}
    for layer in range(LAYERS):
        shapes |= {f"blk.{layer}.attn_{name}": (HIDDEN, HIDDEN) for name in ("q", "k", "v", "output")}
        shapes |= {f"blk.{layer}.ffn_{name}": (INNER, HIDDEN) for name in ("gate", "up")}
        shapes[f"blk.{layer}.ffn_down"] = (HIDDEN, INNER)
        writer.add_tensor(f"blk.{layer}.attn_norm.weight", ones)
        writer.add_tensor(f"blk.{layer}.ffn_norm.weight", ones)
    writer.add_tensor("output_norm.weight", ones)
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", (random.standard_normal(shape) * 0.05).astype(np.float16))


def main(path: str) -> None:
    """Write the file that `-m` takes, about 1 MB."""
    tokens, merges = trained_vocabulary()
    writer = gguf.GGUFWriter(path, "llama")
    describe(writer, tokens, merges)
    add_weights(writer, len(tokens))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main(sys.argv[1])
