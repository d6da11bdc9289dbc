#!/usr/bin/env bash
# install_sglang_bench.sh: the load generator of SGLang beside vLLM's packages, which have most of what it imports, and
# without what SGLang's server requires; made once. Prints the folder.
. "$(dirname "$0")/../../integration/install_lib.sh"
lock="$here/../../../locks/peers/sglang.txt"
base="$(bash "$here/../../integration/install_vllm.sh" | tail -n 1)"
lock_home peer-sglang "$lock" "$0" <(echo "$base")
if [ ! -e "$home/.ready" ]; then
    echo "servetop: installing SGLang's load generator beside vLLM into $home" >&2
    environment_over "$base"
    pip=("$home/bin/pip" install --quiet --disable-pip-version-check --no-deps)
    "${pip[@]}" --require-hashes --requirement "$lock"
    "${pip[@]}" sglang==0.5.23 torchvision==0.28.0
    # torchvision's library is built for CUDA and does not load beside torch for the CPU. Its import needs two operators
    # to be declared; a load generator calls neither.
    boxes='(Tensor dets, Tensor scores, float iou_threshold) -> Tensor'
    echo "import torch; torch.library.define('torchvision::nms', '$boxes'); torch.library.define('torchvision::qnms', '$boxes')" \
        > "$(packages_of "$home")/torchvision_operators.pth"
    touch "$home/.ready"
fi
use peer-sglang
