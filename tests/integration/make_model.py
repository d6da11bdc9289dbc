"""Write a Llama without weights: its config and a trained tokenizer (the engine makes random weights).

Runs in vLLM's environment: `python make_model.py tiny|llama-2-7b FOLDER`.
"""

import sys
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, PreTrainedTokenizerFast

CORPUS = ["the quick brown fox jumps over the lazy dog "] * 50 + ["servetop watches a serving engine under load "] * 50
CONFIGS: dict[str, dict[str, Any]] = {
    "tiny": {
        "hidden_size": 128,
        "intermediate_size": 256,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "dtype": "bfloat16",
    },
    "llama-2-7b": {
        "vocab_size": 32_000,
        "hidden_size": 4096,
        "intermediate_size": 11008,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 32,
        "rms_norm_eps": 1e-5,
        "dtype": "float16",
    },
}
"""What differs between the models; without `vocab_size`, the tokenizer's. The sizes of Llama-2-7b are the published."""


def write_tokenizer(folder: str, vocabulary: int) -> PreTrainedTokenizerFast:
    """Train a byte-level BPE on a few sentences; ids that it lacks up to `vocabulary` become words of their own."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1024,
        special_tokens=["<s>", "</s>", "<unk>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    with open(__file__, encoding="utf-8") as source:
        tokenizer.train_from_iterator([source.read()] * 10 + CORPUS, trainer)
    tokenizer.add_tokens([f" w{number}" for number in range(vocabulary - tokenizer.get_vocab_size())])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>")
    fast.chat_template = "{% for m in messages %}{{m['content']}}{% endfor %}"
    fast.save_pretrained(folder)
    return fast


def main(model: str, folder: str) -> None:
    """Write the folder that `--model` takes."""
    config = CONFIGS[model]
    tokenizer = write_tokenizer(folder, config.get("vocab_size", 0))
    LlamaConfig(
        **{"vocab_size": len(tokenizer), **config},
        max_position_embeddings=4096,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        architectures=["LlamaForCausalLM"],
    ).save_pretrained(folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
