"""Which test executes each `servetop` command line of the docs, and which lines cannot be executed here, and why."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.docs.pages import PAGES, name_of
from tests.docs.test_commands import whole_lines

FILES, SERVERS, RUNS, SCREENS, PROGRAMS = "files", "servers", "runs", "screens", "programs"
EXECUTED: Mapping[str, str] = {
    kind: f"tests/cli/test_docs_{module}.py"
    for kind, module in (
        (FILES, "commands"), (SERVERS, "servers"), (RUNS, "runs"), (SCREENS, "screens"), (PROGRAMS, "programs"),
    )
}  # fmt: skip
"""The test that executes all lines of a kind."""

_VLLM = "needs a vLLM that serves this model; tests/integration/test_real_vllm.py starts one with a tiny model"
_ADAPTERS = "needs this engine; tests/integration/test_real_adapters.py starts it with a tiny model"
_NEEDS_GPU = "needs this engine and a GPU; test_launch_argv.py checks the command line that it becomes"
_CONTAINER = "needs a container engine and a GPU; tests/integration/test_containers.py starts llama.cpp in one"
_ENGINE_OPTIONS = "needs an engine that takes these options after --"
NOT_HERE: Mapping[str, str] = {
    "--engine vllm --model qwen2.5-7b": _VLLM,
    "--engine vllm --model llama-2-7b": _VLLM,
    "--engine vllm --model ./my-model -- --dtype bfloat16": _VLLM,
    "--engine vllm --model ./tiny --engine-command /opt/venv/bin/vllm -- --dtype half": _VLLM,
    "--engine vllm --model M -- --tensor-parallel-size 2": "needs vLLM and two GPUs",
    "--engine vllm --model M -- --tensor-parallel-size 2 --data-parallel-size 2": "needs vLLM and four GPUs",
    "--engine vllm --model ./folder -- --served-model-name m --chat-template chat.jinja": _ENGINE_OPTIONS,
    "--engine vllm --model M --model-mix M=1,a=1 -- --enable-lora --lora-modules a=/path/to/adapter": (
        f"{_ENGINE_OPTIONS}; tests/cli/test_model_mix.py mixes models of the simulator"
    ),
    "--engine vllm --model llama-2-7b --launcher docker": _CONTAINER,
    "--engine sglang --model llama-2-7b --launcher docker": _CONTAINER,
    "--engine tgi --model llama-2-7b --launcher docker --image REGISTRY/huggingface/text-generation-inference": (
        _CONTAINER
    ),
    "--engine llama.cpp --model ./model.gguf --max-num-seqs 8 -- --ctx-size 16384": _ADAPTERS,
    "--engine llama.cpp --model ggml-org/gemma-3-1b-it-GGUF": "needs llama.cpp and a download",
    "--engine transformers --model ./my-model -- --cb-max-batch-tokens 2048": _ADAPTERS,
    "--engine transformers --model ./my-model -- --no-continuous-batching": _ADAPTERS,
    "--engine transformers-pipeline --model ./my-model --max-num-seqs 8": _ADAPTERS,
    "--engine transformers-pipeline --model ./my-model -- --batching none": _ADAPTERS,
    "--engine triton-tensorrt-llm --model ./triton_model_repo": _ADAPTERS,
    "--engine ray-serve-llm --engine-command /opt/ray/bin/python --model llama-2-7b --max-num-seqs 64": _ADAPTERS,
    '--engine ray-serve-llm --engine-command "/opt/ray/bin/python my_app.py" --model ./my-model': _ADAPTERS,
    "--engine deepspeed-mii --model llama-2-7b -- --tensor-parallel 2": _NEEDS_GPU,
    "--engine sglang --model llama-2-7b -- --tp 2": _NEEDS_GPU,
    "--engine tensorrt-llm --model llama-2-7b -- --tp_size 2": _NEEDS_GPU,
    "--engine tgi --model llama-2-7b -- --num-shard 2": _NEEDS_GPU,
    "run-pairs --engine vllm --model meta-llama/Llama-3.1-8B --dataset-name trace --dataset-path shape.jsonl"
    ' --a \'--engine-command "/opt/vllm-old/bin/vllm serve"\' --b \'--engine-command "/opt/vllm-new/bin/vllm serve"\''
    " --budget 2h": "needs two installations of vLLM; test_upgrade.py compares two profiles of the simulator",
    "run-pairs --engine vllm --model meta-llama/Llama-3.1-8B --dataset-name trace --dataset-path shape.jsonl"
    " --a '-- --no-enable-prefix-caching' --b ''": (
        f"{_ENGINE_OPTIONS}; tests/integration/test_real_upgrade.py compares two sets of them"
    ),
    "audit --result artifacts/profile_export.jsonl -- aiperf profile --url {url} --model {model} …": "needs AIPerf",
}  # fmt: skip
"""Why a line is not executed here."""
OWN_TESTS: Mapping[str, str] = {
    "engines nimble": "tests/integration/test_plug_in.py",
    "--engine nimble --model ./weights --request-rate 8 -- --fast": "tests/integration/test_plug_in.py",
    "export latest --format acme -o run.tsv": "tests/docs/test_plug_in_guide.py",
    "import run.tsv": "tests/docs/test_plug_in_guide.py",
    "--dataset-name acme-questions --request-rate 2 --output-len 40 --num-prompts 20": (
        "tests/docs/test_plug_in_guide.py"
    ),
    "--arrivals weibull:shape=0.5 --request-rate 8": "tests/docs/test_guides.py",
    "validate": "tests/cli/test_predict.py",
    "run-pairs --request-rate 60 --num-prompts 40 --input-len 32 --output-len 16 --a '--max-num-seqs 64'"
    " --b '--max-num-seqs 1'": "tests/cli/test_run_pairs.py",
    "run-pairs --dataset-name trace --dataset-path shape.jsonl --a '-- --engine-profile vllm-0.5'"
    " --b '-- --engine-profile vllm-current' --metric p50_ttft_ms --metric mean_tpot_ms --into upgrade": (
        "tests/cli/test_upgrade.py"
    ),
}  # fmt: skip
"""The test of a page of its own that executes a line, or what it stands for."""
NEEDS_PACKAGE = {"report.png": "resvg_py", "parquet": "pyarrow"}
"""The package without which a line with this part is not executed."""

_NEEDS_FILES = frozenset({
    "check", "compare", "dataset", "engines", "export", "import", "ls", "manifest", "plot", "predict", "ps",
    "reconcile", "report", "shape", "summary", "verify",
})  # fmt: skip
_KINDS: Mapping[str, str] = {
    **dict.fromkeys(_NEEDS_FILES, FILES),
    **dict.fromkeys(("doctor", "watch"), SERVERS),
    **dict.fromkeys(("rerun", "run-pairs", "search", "sweep"), RUNS),
    **dict.fromkeys(("", "attach", "replay", "stop"), SCREENS),
    **dict.fromkeys(("audit", "serve"), PROGRAMS),
}
_NAMES_ONLY_AN_ENGINE = re.compile(r"--engine (?!sim)\S+ --model \S+( --launcher \S+| --max-num-seqs \d+)*( -- .*)?")


def kind_of(line: str) -> str | None:
    """The kind of a line, by which a test executes it; None if it is executed by none here."""
    if line in NOT_HERE or line in OWN_TESTS or _NAMES_ONLY_AN_ENGINE.fullmatch(line):
        return None
    if line.startswith("audit "):
        return PROGRAMS
    if "://" in line:
        return SERVERS
    if "--truth-a" in line or "--since" in line:
        return PROGRAMS
    if "--against" in line and "--headless" not in line and not line.startswith("compare"):
        return SCREENS
    return RUNS if line.startswith("-") else _KINDS.get(line.partition(" ")[0])


def can_run(line: str) -> bool:
    """Whether the optional package that a line needs is installed."""
    return all(part not in line or importlib.util.find_spec(name) for part, name in NEEDS_PACKAGE.items())


def documented() -> Iterator[tuple[Path, str]]:
    """Each page with each of its command lines."""
    for page in PAGES:
        for line in whole_lines(page):
            yield page, line


def lines_of(kind: str) -> Mapping[str, list[str]]:
    """The lines of a kind, by the name of the page that is the first to have them; pages of engines have their own."""
    found: dict[str, list[str]] = {}
    seen: set[tuple[str, str]] = set()
    for page, line in documented():
        name = name_of(page)
        key = (name if page.parent.name == "engines" else "", line)
        if kind_of(line) == kind and can_run(line) and key not in seen:
            seen.add(key)
            found.setdefault(name, []).append(line)
    return found
