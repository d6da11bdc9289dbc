#!/usr/bin/env bash
# Records the golden runs again, in about three minutes: `bash tests/golden/record.sh` (needs `make integration-all`).
set -euo pipefail
cd "$(dirname "$0")/../.."
servetop=.venv/bin/servetop
vllm="${XDG_CACHE_HOME:-$HOME/.cache}/servetop-integration/vllm"
export HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 VLLM_CPU_KVCACHE_SPACE=1 SERVETOP_RECORDINGS=/tmp
scarce=(--load-format dummy --max-model-len 1024 --enforce-eager --block-size 32 --num-gpu-blocks-override 64
        --no-enable-prefix-caching)
engine=(--engine vllm --engine-command "$vllm/bin/python -m vllm.entrypoints.openai.api_server"
        --model "$vllm/tiny-llama" --max-num-seqs 32 --headless)

rm -f tests/golden/*.servetop
$servetop sweep tests/golden/whitepaper.toml --headless --record tests/golden/whitepaper.servetop || [ $? = 99 ]
$servetop "${engine[@]}" --max-concurrency 24 --num-prompts 72 --input-len 12 --output-len 200 \
    --record tests/golden/vllm.servetop -- "${scarce[@]}" || [ $? = 99 ]

$servetop "${engine[@]}" --request-rate 6 --duration 60 --input-len 12 --output-len 100 \
    --record tests/golden/dies.servetop -- "${scarce[@]}" &
run=$!
.venv/bin/python -m tests.golden.kill_engine tests/golden/dies.servetop "$run"
wait $run || [ $? = 3 ]

transformers="${XDG_CACHE_HOME:-$HOME/.cache}/servetop-integration/transformers"
$servetop --engine transformers --engine-command "$transformers/bin/transformers" --model "$transformers/tiny-llama-w" \
    --num-warmups 2 --request-rate 2 --duration 25 --input-len 12 --output-len 24 --headless \
    --record tests/golden/without_metrics.servetop -- --device cpu || [ $? = 99 ]
