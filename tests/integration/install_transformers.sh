#!/usr/bin/env bash
# A real `transformers serve` with a tiny random model: a thin environment over vLLM's, whose torch it takes; made once.
# Prints the folder. Takes half a minute the first time (and vLLM's five minutes where that is missing), nothing after that.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
version=5.19.0
vllm="$(bash "$here/install_vllm.sh" | tail -1)"
key="transformers-$version-$(cat "$here/make_tiny_weights.py" "$0" <(basename "$vllm") | sha256sum | cut -c1-12)"
cache="${XDG_CACHE_HOME:-$HOME/.cache}/servetop-integration"
home="$cache/$key"
exec 9> "$cache/$key.lock"
flock 9  # two runs on one machine: the second waits for the first one's environment
if [ ! -e "$home/.ready" ]; then
    echo "servetop: installing transformers $version into $home (half a minute, once)" >&2
    rm -rf "$home"
    trap '[ -e "$home/.ready" ] || rm -rf "$home"' EXIT  # scripts of an environment name their folder: it cannot be moved
    "$vllm/bin/python" -m venv "$home"
    site="$("$home/bin/python" -c 'import site; print(site.getsitepackages()[0])')"
    "$vllm/bin/python" -c 'import site; print(site.getsitepackages()[0])' > "$site/vllm.pth"
    "$home/bin/pip" install --quiet --disable-pip-version-check "transformers[serving]==$version" accelerate==1.15.0
    "$home/bin/pip" install --quiet --disable-pip-version-check --no-deps --ignore-installed "transformers==$version"
    HF_HUB_OFFLINE=1 "$home/bin/python" "$here/make_tiny_weights.py" "$vllm/tiny-llama" "$home/tiny-llama-w"
    "$home/bin/python" "$here/real_engines.py" transformers "$home"  # it starts, answers and ends, or this script fails
    touch "$home/.ready"
fi
ln -sfn "$home" "$cache/transformers"
echo "$home"
