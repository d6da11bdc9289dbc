#!/usr/bin/env bash
# install_with_torch.sh PEER: the locked packages of a peer and torch for the CPU in an environment of its own, outside
# the source tree; made once. Prints the folder.
. "$(dirname "$0")/../../integration/install_lib.sh"
lock="$here/../../../locks/peers/$1.txt"
lock_home "peer-$1" "$lock" "$0"
if [ ! -e "$home/.ready" ]; then
    echo "servetop: installing $1 and torch into $home" >&2
    rm -rf "$home"
    "${PYTHON:-python3}" -m venv "$home"
    pip=("$home/bin/pip" install --quiet --disable-pip-version-check --no-deps)
    "${pip[@]}" --require-hashes --requirement "$lock"
    "${pip[@]}" torch==2.13.0  # which build of torch is right depends on the machine: no lock can name its file
    touch "$home/.ready"
fi
use "peer-$1"
