#!/usr/bin/env bash
# Records `sample:overload` again, in two minutes: `make sample`. The machine must be idle, or the client falls behind.
# Strangers read the header of this recording, so the run gets a neutral host name, home folder and time zone.
set -euo pipefail
cd "$(dirname "$0")/../.."
target=recordings/servetop/recordings/shipped/overload.servetop.xz
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HOME=$work SERVETOP_RECORDINGS=$work TZ=UTC

unshare --map-root-user --uts bash -c 'hostname sample && exec "$@"' - .venv/bin/servetop --headless --label overload \
    --ramp '4:15s,4-16:40s,16:12s,4:38s' --goodput ttft:500 --record "$work/overload.servetop" -- --kv-blocks 500 \
    || [ $? = 99 ]
.venv/bin/python -c 'import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute("VACUUM").connection.close()' \
    "$work/overload.servetop"
xz -9 --extreme --stdout "$work/overload.servetop" > "$target"
ls -l "$target"
