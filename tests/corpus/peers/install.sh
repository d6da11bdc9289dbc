#!/usr/bin/env bash
# install.sh PEER: the locked packages of a peer in an environment of its own, outside the source tree; made once.
# Prints the folder.
. "$(dirname "$0")/../../integration/install_lib.sh"
locks="$here/../../../locks/peers"
lock_home "peer-$1" "$locks/$1.txt"
if [ ! -e "$home/.ready" ]; then
    echo "servetop: installing $1 into $home" >&2
    rm -rf "$home"
    "${PYTHON:-python3}" -m venv "$home"
    "$home/bin/pip" install --quiet --disable-pip-version-check --no-deps --require-hashes --requirement "$locks/$1.txt"
    touch "$home/.ready"
fi
use "peer-$1"
