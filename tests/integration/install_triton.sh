#!/usr/bin/env bash
# A real tritonserver out of the wheel nvidia-pytriton, with a small model that exports TensorRT-LLM's metrics; made once.
# Prints the folder. Takes half a minute and 220 MB the first time, nothing after that.
. "$(dirname "$0")/install_lib.sh"
version=0.7.0
files=("$here"/triton_model/ensemble/{config.pbtxt,1/model.py} "$here/tritonserver.sh" "$0")
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
lock_home "triton-$version" "${files[@]}"
if [ ! -e "$home/.ready" ]; then
    echo "servetop: installing tritonserver (nvidia-pytriton $version) into $home (half a minute, once)" >&2
    clean_draft
    python="$(fitting_python)"  # it says what is missing
    "$python" -m venv "$draft/tools"
    pip=("$draft/tools/bin/pip" install --quiet --disable-pip-version-check)
    # The backend's stub speaks to NumPy 1 and looks for it in its working folder and in the base interpreter only.
    "${pip[@]}" --no-deps --target "$draft/home/work" numpy==1.26.4
    "${pip[@]}" --no-deps "nvidia-pytriton==$version"
    site="$(packages_of "$draft/tools")"
    wheel="$site/pytriton/tritonserver"
    mkdir -p "$draft/home"/{bin,lib,backends}
    cp "$wheel/bin/tritonserver" "$draft/home/bin/"
    cp -r "$wheel/backends/python" "$draft/home/backends/"
    cp "$wheel/python_backend_stubs/$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')"/* "$draft/home/backends/python/"
    cp "$site"/nvidia_pytriton.libs/* "$draft/home/lib/"
    ln -s "$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("LIBDIR"))')"/libpython3*.so* "$draft/home/lib/"
    "$python" -c 'import sys; print(sys.base_prefix)' > "$draft/home/python_prefix"
    cp -r "$here/triton_model" "$draft/home/models"
    cp "$here/tritonserver.sh" "$draft/home/tritonserver"
    "$python" "$here/real_engines.py" triton "$draft/home"  # it starts, answers and ends, or this script fails
    touch "$draft/home/.ready"
    mv "$draft/home" "$home"
fi
use triton
