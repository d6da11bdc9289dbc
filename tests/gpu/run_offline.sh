#!/bin/bash
# The GPU check on a bare machine (CPython 3.12, torch 2.11 with CUDA 13, numpy; no pip, no network), in two commands of
# less than nine minutes each, in the root of the repository that carries .gpu (tests/gpu/pack_offline.sh):
#
#     bash tests/gpu/run_offline.sh first     the kernels' self-test, and vLLM's first start, which compiles
#     bash tests/gpu/run_offline.sh check     the check: twice the load that the card can serve
#
# What they leave is in OUT, or gpu-check/. KIT=FOLDER is where pack_offline.sh wrote, PY the Python.
set -euo pipefail
checks=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$checks/../.." && pwd)
kit=$(cd "${KIT:-$top/.gpu}" && pwd) || { echo "run_offline: no kit: run tests/gpu/pack_offline.sh where there is a network"; exit 2; }
step=${1:-check}
export PY=${PY:-python3}
case $step in first) tests=test_first_start.py ;; check) tests=test_gpu_check.py ;; *) echo "usage: run_offline.sh first|check"; exit 2 ;; esac
export SERVETOP_GPU_OUT=${SERVETOP_GPU_OUT:-${OUT:-$top/gpu-check}}
mkdir -p "$SERVETOP_GPU_OUT"

# vLLM's environment is its own: servetop's packages must not stand before vLLM's, nor the other way round.
own=$HOME
work=${KIT_WORK:-/tmp/vllmkit}
mkdir -p "$work/home"
cat >"$work/python-with-vllm" <<WRAPPER
#!/bin/bash
. "$kit/unpack.sh" >/dev/null
[ "\$KIT_READY" = 1 ] || exit 3
export HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1 VLLM_DO_NOT_TRACK=1
export VLLM_HOST_IP=127.0.0.1 VLLM_USE_FLASHINFER_SAMPLER=0 VLLM_USE_DEEP_GEMM=0 TOKENIZERS_PARALLELISM=false
export HOME=$work/home VLLM_CACHE_ROOT=$work/cache TRITON_CACHE_DIR=$work/triton TORCHINDUCTOR_CACHE_DIR=$work/inductor
export GLOO_SOCKET_IFNAME=\${GLOO_SOCKET_IFNAME:-lo} NCCL_SOCKET_IFNAME=\${NCCL_SOCKET_IFNAME:-lo} PYTHONUNBUFFERED=1
exec "$PY" "\$@"
WRAPPER
chmod +x "$work/python-with-vllm"
. "$kit/unpack.sh"
[ "$KIT_READY" = 1 ] || { echo "run_offline: the kit in $kit is not complete"; exit 3; }
unset PYTHONPATH  # unpack.sh sets it, and names of its own

sum=$(cat "$kit"/wheels/*.whl | sha256sum | cut -c1-12)
site=$work/servetop-$sum
if [ ! -f "$site/.ready" ]; then  # a wheel is a zip: no pip is needed for those without a build step
    rm -rf "$site"
    "$PY" - "$site" "$kit"/wheels/*.whl <<'UNZIP'
import sys, zipfile
for wheel in sys.argv[2:]:
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            parts = member.filename.split("/")
            if parts[0].endswith(".data"):
                if parts[1] not in ("purelib", "platlib"):
                    continue
                member.filename = "/".join(parts[2:])
            if member.filename and not member.is_dir():
                archive.extract(member, sys.argv[1])
UNZIP
    touch "$site/.ready"
fi
rooms=("$top"/*/servetop)
export PYTHONPATH=$(printf '%s:' "${rooms[@]%/servetop}")$site
export SERVETOP_VLLM_PYTHON=$work/python-with-vllm HOME=$own PYTHONDONTWRITEBYTECODE=1
"$PY" -c "import numpy, servetop.cli.main, pytest, pytest_asyncio, pytest_timeout, hypothesis" ||
    { echo "run_offline: servetop does not load here: is $PY a CPython 3.12 with numpy?"; exit 3; }

if nvidia-smi -L 2>/dev/null; then
    "$SERVETOP_VLLM_PYTHON" -c "import vllm" || { echo "run_offline: the kit's vLLM does not load here"; exit 3; }
    if [ "$step" = first ]; then
        timeout 150 "$SERVETOP_VLLM_PYTHON" "$checks/kit/selftest.py" 2>&1 | tee "$SERVETOP_GPU_OUT/selftest.txt" ||
            echo "run_offline: a kernel failed its self-test; going on to see what vLLM says"
    fi
else
    echo "run_offline: no GPU: what needs one is skipped"
fi
cd "$top"
rc=0
timeout 530 "$PY" -m pytest -q -rs -s -p no:cacheprovider -m gpu "tests/gpu/$tests" || rc=$?
echo "run_offline: $step ended with $rc after $SECONDS s; what it left is in $SERVETOP_GPU_OUT"
exit $rc
