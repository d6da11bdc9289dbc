#!/usr/bin/env bash
# run.sh lowest|newest [pytest arguments…]: the unit tests with the lowest versions that pyproject.toml claims
# (locks/lowest.txt), or the newest, which are not locked, because what was published last is what they test. The packages
# are cached outside the source tree (lowest: keyed by the lock, installed once; newest: brought up to date each time);
# the checkout itself is installed into a thin layer, .venv-lowest or .venv-newest.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
which="$1"; shift
cd "$here/../.."
python="${PYTHON:-python3}"
case "$which" in
    lowest) packages=(--no-deps --require-hashes -r locks/lowest.txt) ;;
    *) mapfile -t packages < <("$python" "$here/requirements.py" "$which"); packages+=(--upgrade --upgrade-strategy eager editables) ;;
esac
key="$which-$({ "$python" --version; echo "${packages[@]}"; [ "$which" = newest ] || cat locks/lowest.txt; } | sha256sum | cut -c1-12)"
cache="${XDG_CACHE_HOME:-$HOME/.cache}/servetop-bounds"
home="$cache/$key"
mkdir -p "$cache"
exec 9> "$cache/$key.lock"
flock 9  # two runs on one machine: the second waits for the first one's packages
if [ "$which" = newest ] || [ ! -e "$home/.ready" ]; then
    echo "servetop: installing the $which versions of all packages into $home" >&2
    PYTHON="$python" bash locks/pip_install.sh "$home" --quiet "${packages[@]}"
    "$home/bin/pip" check
    touch "$home/.ready"
fi
flock -u 9
layer=".venv-$which"
rm -rf "$layer"
"$home/bin/python" -m venv --without-pip "$layer"
folder() { "$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }
folder "$home" > "$(folder "$layer")/packages.pth"
"$home/bin/python" -m pip --python "$layer" install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
echo "servetop: testing with the $which versions on $("$layer/bin/python" --version)" >&2
exec "$layer/bin/python" -m pytest -q -n 2 --dist loadfile "$@"
