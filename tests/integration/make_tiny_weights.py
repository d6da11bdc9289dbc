"""Give the tiny Llama random weights, the same each time.

Runs in an environment with transformers and torch: `python make_tiny_weights.py FOLDER-WITHOUT FOLDER-WITH`.
"""

import shutil
import sys
from pathlib import Path

import torch
from transformers import AutoConfig, LlamaForCausalLM


def main(source: Path, target: Path) -> None:
    """Write the folder that `transformers serve` takes: greedy answers, 32-bit weights."""
    torch.manual_seed(0)
    model = LlamaForCausalLM(AutoConfig.from_pretrained(source)).to(torch.float32)
    model.generation_config.do_sample = False
    model.save_pretrained(target)
    for path in source.glob("*token*"):
        shutil.copy(path, target)
    for path in source.glob("*.jinja"):
        shutil.copy(path, target)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
