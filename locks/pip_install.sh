#!/usr/bin/env bash
# pip_install.sh ENVIRONMENT PIP-ARGUMENT…: installs into a virtual environment, which is made where there is none, and
# made anew where an interruption left it half made. One that installs into it at the same time is waited for.
set -euo pipefail
environment="$1"; shift
mkdir -p "$environment"
exec 9< "$environment"
if command -v flock > /dev/null; then flock 9; fi
if [ -e "$environment/.installing" ]; then find "$environment" -mindepth 1 -delete; fi
touch "$environment/.installing"
[ -x "$environment/bin/pip" ] || "${PYTHON:-python3}" -m venv "$environment"
"$environment/bin/pip" install --disable-pip-version-check "$@"
rm "$environment/.installing"
