#!/usr/bin/env bash
# A real tritonserver out of the wheel nvidia-pytriton, with a small model that exports TensorRT-LLM's metrics; made once.
# Prints the folder. Takes half a minute and 220 MB the first time, nothing after that.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
version=0.7.0
key="triton-$version-$(cat "$here"/triton_model/ensemble/{config.pbtxt,1/model.py} "$here/tritonserver.sh" "$0" | sha256sum | cut -c1-12)"
cache="${XDG_CACHE_HOME:-$HOME/.cache}/servetop-integration"
home="$cache/$key"
fitting='import os, sys, sysconfig as s
has = os.path.exists(os.path.join(s.get_config_var("LIBDIR") or "", s.get_config_var("INSTSONAME") or "-"))
sys.exit(not (has and (3, 9) <= sys.version_info[:2] <= (3, 12)))'
fitting_python() {  # The model runs inside Python's shared library, and NumPy 1.26.4 ends with Python 3.12.
    for python in "${PYTHON:-python3}" python3.12 python3.11 python3.10 /usr/bin/python3; do
        if "$python" -c "$fitting" 2> /dev/null; then echo "$python"; return; fi
    done
    echo "servetop: Triton's Python backend needs a Python 3.9 to 3.12 with its shared library: set PYTHON to one" >&2
    echo "servetop: (Debian: apt-get install python3.11-venv libpython3.11)" >&2
    return 1
}
mkdir -p "$cache"
exec 9> "$cache/$key.lock"
flock 9  # two runs on one machine: the second waits for the first one's folder
if [ ! -e "$home/.ready" ]; then
    echo "servetop: installing tritonserver (nvidia-pytriton $version) into $home (half a minute, once)" >&2
    rm -rf "$home" "$cache/$key.making".*
    making="$(mktemp -d "$cache/$key.making.XXXX")"
    trap 'rm -rf "$making"' EXIT
    python="$(fitting_python)"  # it says what is missing
    "$python" -m venv "$making/tools"
    pip=("$making/tools/bin/pip" install --quiet --disable-pip-version-check)
    # The backend's stub speaks to NumPy 1 and looks for it in its working folder and in the base interpreter only.
    "${pip[@]}" --target "$making/home/work" numpy==1.26.4
    "${pip[@]}" --no-deps "nvidia-pytriton==$version"
    site="$("$making/tools/bin/python" -c 'import site; print(site.getsitepackages()[0])')"
    wheel="$site/pytriton/tritonserver"
    mkdir -p "$making/home"/{bin,lib,backends}
    cp "$wheel/bin/tritonserver" "$making/home/bin/"
    cp -r "$wheel/backends/python" "$making/home/backends/"
    cp "$wheel/python_backend_stubs/$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')"/* "$making/home/backends/python/"
    cp "$site"/nvidia_pytriton.libs/* "$making/home/lib/"
    ln -s "$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("LIBDIR"))')"/libpython3*.so* "$making/home/lib/"
    "$python" -c 'import sys; print(sys.base_prefix)' > "$making/home/python_prefix"
    cp -r "$here/triton_model" "$making/home/models"
    cp "$here/tritonserver.sh" "$making/home/tritonserver"
    "$python" "$here/real_engines.py" triton "$making/home"  # it starts, answers and ends, or this script fails
    touch "$making/home/.ready"
    mv "$making/home" "$home"
fi
ln -sfn "$home" "$cache/triton"
echo "$home"
