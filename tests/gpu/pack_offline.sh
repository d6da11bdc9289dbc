#!/bin/bash
# Pack all that the GPU check needs on a machine without a network and without pip: bash tests/gpu/pack_offline.sh [FOLDER]
#
# Writes FOLDER (.gpu): parts/ and unpack.sh (vLLM, 44 MiB), wheels/ (servetop, what it needs, pytest and its plug-ins,
# for CPython 3.12). Needs a network, Python 3.11 or newer with pip 23 or newer (PYTHON=…), and some minutes. Carry the
# repository and FOLDER to the machine, and run tests/gpu/run_offline.sh there.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../.." && pwd)
out=${1:-$top/.gpu}
python=${PYTHON:-python3}
mkdir -p "$out"

[ -f "$out/MANIFEST.json" ] || "$python" "$here/kit/pack_vllm.py" --out "$out" --work "$out.build" --pip-python "$python"
rm -rf "$out.build"

rm -rf "$out/wheels"
platforms=(manylinux_2_{39,35,34,31,28,27,26,24,17,12,5}_x86_64 manylinux{2014,2010,1}_x86_64)
mapfile -t needed < <("$python" -c '
import sys, tomllib
print(*tomllib.load(open(sys.argv[1], "rb"))["project"]["dependencies"], sep="\n")' "$top/pyproject.toml")
"$python" -m pip download --quiet --disable-pip-version-check --only-binary=:all: --python-version 3.12 \
    --implementation cp "${platforms[@]/#/--platform=}" --dest "$out/wheels" \
    "${needed[@]}" 'pytest>=8' 'pytest-asyncio>=0.24' 'pytest-timeout>=2.3' 'hypothesis>=6.100'
rm -f "$out"/wheels/{numpy,uvloop,pygments}-*  # 22 MB; vLLM, torch and the kit need the machine's own anyway
"$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$out/wheels" "$top"
echo "pack_offline: $(du -sm "$out" | cut -f1) MiB in $out, $(ls "$out/wheels" | wc -l) wheels"
