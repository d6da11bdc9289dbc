#!/usr/bin/env bash
# podman, and an image with the llama-server that install_llama_cpp.sh built: built here, without a registry.
# Prints the folder; fails where the machine runs no containers. Takes a minute the first time, nothing after that.
. "$(dirname "$0")/install_lib.sh"
server="$(readlink -f "$cache/llama.cpp")/llama-server"
test -x "$server" || { echo "servetop: llama-server is not built: no image of it" >&2; exit 1; }
lock_home podman "$0" "$here/container_root.py" "$server"
image="localhost/servetop-llama-server:${key#podman-}"
if ! command -v podman > /dev/null; then
    echo "servetop: installing podman" >&2
    bash "$here/apt_install.sh" --no-install-recommends \
        podman runc catatonit containernetworking-plugins iptables
fi
mkdir -p "$home"
rm -f "$home/.ready"
# Limits that may be set wherever this runs: podman's own are higher than a machine that is itself one may allow.
printf '[containers]\ndefault_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]\n' > "$home/containers.conf"
command -v runc > /dev/null && printf '[engine]\nruntime = "runc"\n' >> "$home/containers.conf"
export CONTAINERS_CONF="$home/containers.conf"
podman image exists "$image" || "${PYTHON:-python3}" "$here/container_root.py" "$server" | podman import --quiet - "$image" >&2
# A container with a published port that answers, as the tests want it; not every machine's kernel has what that takes.
port="$("${PYTHON:-python3}" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')"
model="$(dirname "$server")/tiny.gguf"
trap 'podman rm --force --time 0 "servetop-check-$port" > /dev/null 2>&1 || true' EXIT
podman run --detach --rm --init --ipc=host --name "servetop-check-$port" -p "127.0.0.1:$port:$port" \
    --security-opt label=disable -v "$model:$model:ro" --entrypoint /app/llama-server "$image" \
    -m "$model" --host 0.0.0.0 --port "$port" -c 512 -t 1 --no-warmup > /dev/null
"${PYTHON:-python3}" - "http://127.0.0.1:$port/health" >&2 << 'END'
import sys, time, urllib.request
for _ in range(100):
    try:
        sys.exit(urllib.request.urlopen(sys.argv[1], timeout=2).status != 200)
    except OSError:
        time.sleep(0.2)
sys.exit("servetop: a container's published port does not answer on this machine")
END
echo "$image" > "$home/image"
touch "$home/.ready"
use podman
