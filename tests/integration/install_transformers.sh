#!/usr/bin/env bash
# A real `transformers serve` with a tiny random model: a thin environment over vLLM's, whose torch it takes; made once.
# Prints the folder. Takes half a minute the first time (and vLLM's five minutes where that is missing), nothing after that.
. "$(dirname "$0")/install_lib.sh"
version=5.19.0
vllm="$(bash "$here/install_vllm.sh" | tail -1)"
files=("$locks/transformers.txt" "$here/make_tiny_weights.py" "$here/install_lib.sh" "$0")
lock_home "transformers-$version" "${files[@]}" <(basename "$vllm")
if [ ! -e "$home/.ready" ]; then
    echo "servetop: installing transformers $version into $home (half a minute, once)" >&2
    environment_over "$vllm"
    install "$home" "$locks/transformers.txt"
    "$home/bin/pip" install --quiet --disable-pip-version-check --no-deps --ignore-installed "transformers==$version"
    HF_HUB_OFFLINE=1 "$home/bin/python" "$here/make_tiny_weights.py" "$vllm/tiny-llama" "$home/tiny-llama-w"
    "$home/bin/python" "$here/real_engines.py" transformers "$home"  # it starts, answers and ends, or this script fails
    touch "$home/.ready"
fi
use transformers
