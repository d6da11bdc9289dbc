"""Write a tiny Llama: a config and a trained tokenizer, no weights (the engine makes random ones).

Runs in vLLM's environment: `python make_tiny_model.py FOLDER`.
"""

import sys

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, PreTrainedTokenizerFast

CORPUS = ["the quick brown fox jumps over the lazy dog "] * 50 + ["servetop watches a serving engine under load "] * 50


def write_tokenizer(folder: str) -> int:
    """Train a byte-level BPE on a few sentences; the size of its vocabulary."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1024,
        special_tokens=["<s>", "</s>", "<unk>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    with open(__file__, encoding="utf-8") as source:
        tokenizer.train_from_iterator([source.read()] * 10 + CORPUS, trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>")
    fast.chat_template = "{% for m in messages %}{{m['content']}}{% endfor %}"
    fast.save_pretrained(folder)
    return len(fast)


def main(folder: str) -> None:
    """Write the folder that `--model` takes."""
    LlamaConfig(
        vocab_size=write_tokenizer(folder),
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=4096,
        bos_token_id=0,
        eos_token_id=1,
        dtype="bfloat16",
        architectures=["LlamaForCausalLM"],
    ).save_pretrained(folder)


if __name__ == "__main__":
    main(sys.argv[1])
