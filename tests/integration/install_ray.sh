#!/usr/bin/env bash
# A real Ray Serve LLM: a thin environment over vLLM's, which runs the model; made once.
# Prints the folder. Takes two minutes and 0.5 GB the first time (and vLLM's five where that is missing), nothing after that.
. "$(dirname "$0")/install_lib.sh"
version=2.60.0
vllm="$(bash "$here/install_vllm.sh" | tail -1)"
lock_home "ray-$version" "$locks/ray-serve-llm.txt" "$0" "$here/install_lib.sh" <(basename "$vllm")
if [ ! -e "$home/.ready" ]; then
    echo "servetop: installing Ray Serve LLM $version into $home (two minutes, once)" >&2
    environment_over "$vllm"
    install "$home" "$locks/ray-serve-llm.txt"
    wait_asleep "$home"
    cp -r "$vllm/tiny-llama" "$home/"
    "$home/bin/python" "$here/real_engines.py" ray-serve-llm "$home"  # it starts, answers and ends, or this script fails
    touch "$home/.ready"
fi
use ray-serve-llm
