#!/usr/bin/env bash
# install_vllm_bench.sh: vLLM's environment with pandas, with which its benchmark reads data files; made once.
# Prints the folder.
. "$(dirname "$0")/../../integration/install_lib.sh"
lock="$here/../../../locks/peers/vllm-bench.txt"
base="$(bash "$here/../../integration/install_vllm.sh" | tail -n 1)"
lock_home peer-vllm-bench "$lock" <(echo "$base")
if [ ! -e "$home/.ready" ]; then
    echo "servetop: installing pandas beside vLLM into $home" >&2
    environment_over "$base"
    "$home/bin/pip" install --quiet --disable-pip-version-check --no-deps --require-hashes --requirement "$lock"
    touch "$home/.ready"
fi
use peer-vllm-bench
