#!/usr/bin/env bash
# install_inference_perf.sh: inference-perf with Python 3.12, which it requires and servetop does not; made once.
# Prints the folder; fails if there is no Python 3.12.
set -euo pipefail
for python in python3.12 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.12.*/bin/python; do
    if "$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 12))' 2> /dev/null; then
        PYTHON="$python" exec bash "$(dirname "$0")/install.sh" inference-perf
    fi
done
echo "servetop: inference-perf needs Python 3.12, which is not installed" >&2
exit 1
