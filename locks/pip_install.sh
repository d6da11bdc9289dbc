#!/usr/bin/env bash
# pip_install.sh ENVIRONMENT PIP-ARGUMENT…: installs into a virtual environment, which is made where there is none, and
# made anew where an interruption left it half made.
set -euo pipefail
environment="$1"; shift
if [ -e "$environment/.installing" ]; then rm -rf "$environment"; fi
mkdir -p "$environment"
touch "$environment/.installing"
[ -x "$environment/bin/pip" ] || "${PYTHON:-python3}" -m venv "$environment"
"$environment/bin/pip" install --disable-pip-version-check "$@"
rm "$environment/.installing"
