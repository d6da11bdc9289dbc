#!/usr/bin/env bash
# Installs the real engines that the tests want, one after the other; says loudly which could not be installed.
# All of them with SERVETOP_INTEGRATION=all. Fails when one is missing and SERVETOP_INTEGRATION_STRICT is set (CI);
# podman, which not every machine can run, may be missing all the same.
set -uo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
cache="${XDG_CACHE_HOME:-$HOME/.cache}/servetop-integration"
mkdir -p "$cache"
engines=(vllm llama.cpp triton podman)
[ "${SERVETOP_INTEGRATION:-}" = all ] && engines+=(transformers ray-serve-llm)
missing=()
for engine in "${engines[@]}"; do
    case "$engine" in
        llama.cpp) script=install_llama_cpp.sh ;;
        ray-serve-llm) script=install_ray.sh ;;
        *) script="install_$engine.sh" ;;
    esac
    start=$SECONDS
    if bash "$here/$script" 2>&1 | tee "$cache/$engine.log" | sed -un '/^servetop: /p'; then  # the rest is pip's and the like
        echo "servetop: $engine is there ($((SECONDS - start)) s)" >&2
    else
        [ "$engine" = podman ] || missing+=("$engine")
        rm -f "$cache/$engine"  # an older version must not stand in for it unnoticed
        printf '\nservetop: !!! %s COULD NOT BE INSTALLED: its tests are skipped. The end of %s:\n' "$engine" "$cache/$engine.log" >&2
        tail -5 "$cache/$engine.log" >&2
    fi
done
if [ ${#missing[@]} -gt 0 ] && [ -n "${SERVETOP_INTEGRATION_STRICT:-}" ]; then
    echo "servetop: without ${missing[*]} this check is not complete (SERVETOP_INTEGRATION_STRICT is set)" >&2; exit 1
fi
