#!/usr/bin/env bash
# podman, and an image with the llama-server that install_llama_cpp.sh built: made here, no registry is asked.
# Prints the folder; fails where the machine runs no containers. Takes a minute the first time, nothing after that.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
cache="${XDG_CACHE_HOME:-$HOME/.cache}/servetop-integration"
server="$(readlink -f "$cache/llama.cpp")/llama-server"
test -x "$server" || { echo "servetop: llama-server is not built: no image of it" >&2; exit 1; }
key="$(cat "$0" "$here/container_root.py" "$server" | sha256sum | cut -c1-12)"
home="$cache/podman-$key"
image="localhost/servetop-llama-server:$key"
exec 9> "$home.lock"
flock 9
if ! command -v podman > /dev/null; then
    [ "$(id -u)" = 0 ] || { echo "servetop: podman is not installed (apt-get install podman, as root)" >&2; exit 1; }
    echo "servetop: installing podman" >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends \
        podman runc catatonit containernetworking-plugins iptables > "$home.apt.log" 2>&1 \
        || { tail -5 "$home.apt.log" >&2; exit 1; }
fi
mkdir -p "$home"
rm -f "$home/.ready"
# Limits that may be set wherever this runs: podman's own are higher than a machine that is itself one may allow.
printf '[containers]\ndefault_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]\n' > "$home/containers.conf"
command -v runc > /dev/null && printf '[engine]\nruntime = "runc"\n' >> "$home/containers.conf"
export CONTAINERS_CONF="$home/containers.conf"
podman image exists "$image" || "${PYTHON:-python3}" "$here/container_root.py" "$server" | podman import --quiet - "$image" >&2
podman run --rm --init --entrypoint /app/llama-server "$image" --version >&2
echo "$image" > "$home/image"
touch "$home/.ready"
ln -sfn "$home" "$cache/podman"
echo "$home"
