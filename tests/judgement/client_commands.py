"""The commands of load generators, as an experienced user types them, for the same loads with the same lengths.

Each client runs in an environment of its own, which tests/corpus/peers/install*.sh makes. LLMPerf is not among them: it
is published as source only, and the package of that name is another tool.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.house.source_tree import TOP
from tests.judgement.shared_prompts import write_conversations, write_prompts

INPUT, OUTPUT = 128, 64
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "servetop-integration"
PEERS = TOP / "tests" / "corpus" / "peers"
_PROMPT_KEYS = ("prompt", "output_tokens")


@dataclass(frozen=True, kw_only=True)
class Load:
    """A load: requests at a rate, or a number of them in flight."""

    title: str
    rate: float | None
    concurrency: int | None
    count: int
    prompts: Sequence[str] = ()
    """What each client sends; without it, each makes prompts of its own, whose tokens the server counts otherwise."""


def loads(seconds: float) -> tuple[Load, ...]:
    """Two loads of about this length."""
    open_loop = Load(title="8 req/s", rate=8.0, concurrency=None, count=round(8 * seconds))
    return open_loop, Load(title="16 in flight", rate=None, concurrency=16, count=round(14 * seconds))


Words = Callable[[Load, Path], tuple[Sequence[str], Path]]
"""The command of a load in a folder, and the file with its result."""


def servetop(load: Load, folder: Path) -> tuple[Sequence[str], Path]:
    result = folder / "run.servetop"
    kind = ("--request-rate", f"{load.rate:g}") if load.rate else ("--max-concurrency", str(load.concurrency))
    lengths: Sequence[str] = ("--input-len", str(INPUT), "--output-len", str(OUTPUT))
    if load.prompts:
        file = write_prompts(folder / "prompts.jsonl", load.prompts, output_tokens=OUTPUT, keys=_PROMPT_KEYS)
        lengths = ("--dataset-name", "custom", "--dataset-path", str(file))
    start = (sys.executable, "-m", "servetop", "--url", "{url}", "--headless", "--record", str(result))
    return (*start, *kind, *lengths, "--num-prompts", str(load.count)), result


def vllm_bench(load: Load, folder: Path) -> tuple[Sequence[str], Path]:
    home = _installed("install_vllm_bench.sh")
    rate = f"{load.rate:g}" if load.rate else "inf"
    limit = ("--max-concurrency", str(load.concurrency)) if load.concurrency else ()
    lengths: Sequence[str] = (
        "--dataset-name", "random", "--random-input-len", str(INPUT), "--random-output-len", str(OUTPUT)
    )  # fmt: skip
    if load.prompts:
        file = write_prompts(folder / "prompts.jsonl", load.prompts, output_tokens=OUTPUT, keys=_PROMPT_KEYS)
        lengths = (
            "--dataset-name", "custom", "--dataset-path", str(file), "--custom-output-len", "-1",
            "--skip-chat-template", "--disable-shuffle",
        )  # fmt: skip
    words = (
        str(home / "bin" / "python"), "-m", "vllm.entrypoints.cli.main", "bench", "serve", "--backend", "openai",
        "--base-url", "{url}", "--endpoint", "/v1/completions", "--model", "{model}", "--tokenizer", _tokenizer(),
        "--num-prompts", str(load.count), "--request-rate", rate, *limit, *lengths, "--ignore-eos",
        "--save-result", "--save-detailed", "--result-dir", str(folder), "--result-filename", "result.json",
    )  # fmt: skip
    return words, folder / "result.json"


def aiperf(load: Load, folder: Path) -> tuple[Sequence[str], Path]:
    home = _installed("install.sh", "aiperf")
    kind = ("--request-rate", f"{load.rate:g}") if load.rate else ("--concurrency", str(load.concurrency))
    lengths: Sequence[str] = ("--isl", str(INPUT), "--osl", str(OUTPUT))
    if load.prompts:
        file = write_prompts(
            folder / "prompts.jsonl", load.prompts, output_tokens=OUTPUT, keys=("text", "output_length")
        )
        lengths = ("--input-file", str(file), "--custom-dataset-type", "single_turn")
    words = (
        str(home / "bin" / "aiperf"), "profile", "--url", "{url}", "--model", "{model}", "--tokenizer", _tokenizer(),
        "--endpoint-type", "completions", "--streaming", "--ui", "none", "--use-server-token-count",
        "--extra-inputs", "ignore_eos:true", "--extra-inputs", f"min_tokens:{OUTPUT}",
        "--request-count", str(load.count), *kind, *lengths, "--output-artifact-dir", str(folder),
    )  # fmt: skip
    return words, folder / "profile_export.jsonl"


def guidellm(load: Load, folder: Path) -> tuple[Sequence[str], Path]:
    home, result = _installed("install_with_torch.sh", "guidellm"), folder / "benchmarks.json"
    kind = f"constant,rate={load.rate:g}" if load.rate else f"concurrent,streams={load.concurrency}"
    data = f"synthetic_text,prompt_tokens={INPUT},output_tokens={OUTPUT}"
    if load.prompts:
        keys = ("prompt", "output_tokens_count")
        file = write_prompts(folder / "prompts.jsonl", load.prompts, output_tokens=OUTPUT, keys=keys)
        data = f"json_file,path={file}"
    words = (
        str(home / "bin" / "guidellm"), "run", "--disable-console", "--profile", f"kind={kind}",
        "--backend", "kind=openai_http,target={url},model={model},request_format=/v1/completions",
        "--constraint", f"kind=max_requests,count={load.count}", "--tokenizer", f"kind=hf_auto,model={_tokenizer()}",
        "--data", f"kind={data}", "--output", f"kind=json,path={result}",
    )  # fmt: skip
    return words, result


def sglang_bench(load: Load, folder: Path) -> tuple[Sequence[str], Path]:
    home = _installed("install_sglang_bench.sh")
    result = folder / "result.jsonl"
    limit = ("--max-concurrency", str(load.concurrency)) if load.concurrency else ()
    lengths: Sequence[str] = (
        "--dataset-name", "random-ids", "--random-input-len", str(INPUT), "--random-output-len", str(OUTPUT),
        "--random-range-ratio", "1",
    )  # fmt: skip
    if load.prompts:
        file = write_conversations(folder / "prompts.jsonl", load.prompts, output_tokens=OUTPUT)
        lengths = ("--dataset-name", "custom", "--dataset-path", str(file), "--sharegpt-output-len", str(OUTPUT))
    words = (
        str(home / "bin" / "python"), "-m", "sglang.benchmark.serving", "--backend", "vllm", "--base-url", "{url}",
        "--model", "{model}", "--tokenizer", _tokenizer(), "--num-prompts", str(load.count), "--disable-tqdm",
        "--request-rate", f"{load.rate:g}" if load.rate else "inf", *limit, *lengths,
        "--output-file", str(result), "--output-details",
    )  # fmt: skip
    return words, result


def inference_perf(load: Load, folder: Path) -> tuple[Sequence[str], Path]:
    home = _installed("install_inference_perf.sh")
    stage: Mapping[str, float | int | None] = {"rate": load.rate, "duration": round(load.count / (load.rate or 1.0))}
    if load.concurrency:
        stage = {"num_requests": load.count, "concurrency_level": load.concurrency}
    data: Mapping[str, object] = {
        "type": "random",
        **{f"{side}_distribution": {"type": "fixed", "mean": size, "min": size, "max": size, "std_dev": 0,
           "total_count": load.count} for side, size in (("input", INPUT), ("output", OUTPUT))},
    }  # fmt: skip
    if load.prompts:
        file = write_conversations(folder / "prompts.json", load.prompts, output_tokens=OUTPUT)
        data = {"type": "shareGPT", "path": str(file)}
    config = folder / "config.yml"
    config.write_text(json.dumps({
        "load": {"type": "constant" if load.rate else "concurrent", "stages": [stage]},
        "data": data, "api": {"type": "completion", "streaming": True},
        "tokenizer": {"pretrained_model_name_or_path": _tokenizer()},
        "report": {"request_lifecycle": {"per_request": True}},
        "storage": {"local_storage": {"path": str(folder / "reports")}},
    }), encoding="utf-8")  # fmt: skip
    words = (
        str(home / "bin" / "inference-perf"), "--config_file", str(config), "--server.type", "vllm",
        "--server.model_name", "{model}", "--server.base_url", "{url}", "--server.ignore_eos", "true",
    )  # fmt: skip
    return words, folder / "reports" / "per_request_lifecycle_metrics.json"


CLIENTS: Mapping[str, Words] = {
    "servetop": servetop,
    "vLLM bench": vllm_bench,
    "AIPerf": aiperf,
    "guidellm": guidellm,
    "SGLang bench": sglang_bench,
    "inference-perf": inference_perf,
}
"""By name."""


class LeftOutError(Exception):
    """A client cannot be installed, or its audit failed."""


def _installed(script: str, *words: str) -> Path:
    """Install a client, if it is not, and return the folder of its environment."""
    done = subprocess.run(["bash", PEERS / script, *words], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise LeftOutError("it cannot be installed here")
    return Path(done.stdout.splitlines()[-1])


def _tokenizer() -> str:
    """Return the folder of the tokenizer that install_vllm.sh makes."""
    folder = CACHE / "vllm" / "tiny-llama"
    if not folder.exists():
        raise LeftOutError("there is no tokenizer: run tests/integration/install_vllm.sh")
    return str(folder)
