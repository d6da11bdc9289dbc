#!/usr/bin/env bash
# tritonserver with what the machine would have to offer: its libraries, its backends, and a working folder with NumPy 1.26.4.
home="$(cd "$(dirname "$(readlink -f "$0")")" && pwd)"
cd "$home/work" || exit 1
export PATH="$(cat "$home/python_prefix")/bin:$PATH"  # its Python library takes the modules of the first python3 there
export LD_LIBRARY_PATH="$home/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
exec "$home/bin/tritonserver" --backend-directory="$home/backends" --allow-gpu-metrics=false --exit-timeout-secs=3 "$@"
