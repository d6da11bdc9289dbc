#!/usr/bin/env bash
# lock.sh UV: pins the newest versions of all packages that tests install, and their hashes where they test servetop
# itself. Installations take them with --no-deps, so nothing that is published later gets into one.
set -euo pipefail
cd "$(dirname "$0")/.."
uv="$1"
lock() { # OUTPUT ARGUMENT…
    echo "servetop: locking $1"
    "$uv" pip compile --quiet --upgrade --universal --python-version "${python:-3.11}" --no-strip-extras --no-emit-index-url \
        --no-annotate --no-header "${@:2}" --output-file "locks/$1"
}
lock ci.txt --generate-hashes pyproject.toml --extra dev locks/build.in
lock audit.txt --generate-hashes locks/audit.in
lock lowest.txt --generate-hashes <(python3 tests/bounds/requirements.py lowest; cat locks/build.in)
without_torch=(--override locks/engines/without_torch.txt)
lock engines/vllm.txt "${without_torch[@]}" locks/engines/vllm.in
for layer in transformers ray-serve-llm; do # thin environments over vLLM's
    lock "engines/$layer.txt" "${without_torch[@]}" --constraint locks/engines/vllm.txt "locks/engines/$layer.in"
done
lock engines/llama.cpp.txt locks/engines/llama.cpp.in
lock peers/llm-d.txt --generate-hashes locks/peers/llm-d.in
lock peers/notebook.txt --generate-hashes locks/peers/notebook.in
lock peers/site.txt --generate-hashes locks/peers/site.in
lock peers/openai.txt --generate-hashes locks/peers/openai.in
lock peers/aiperf.txt --generate-hashes locks/peers/aiperf.in
lock peers/vllm-bench.txt --generate-hashes --constraint locks/engines/vllm.txt --no-emit-package numpy locks/peers/vllm-bench.in
lock peers/guidellm.txt --generate-hashes "${without_torch[@]}" locks/peers/guidellm.in
python=3.12 lock peers/inference-perf.txt --generate-hashes locks/peers/inference-perf.in
lock peers/sglang.txt --generate-hashes "${without_torch[@]}" locks/peers/sglang.in
