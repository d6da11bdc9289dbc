#!/usr/bin/env bash
# Prometheus and promtool, for the test of --prometheus-port; does nothing where they are. Where apt-get cannot
# be used it says so, which is a failure if SERVETOP_INTEGRATION_STRICT is set (CI).
set -euo pipefail
if command -v prometheus >/dev/null && command -v promtool >/dev/null; then exit 0; fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "servetop: install prometheus to have --prometheus-port tested with it; that test is skipped now" >&2
    if [ -n "${SERVETOP_INTEGRATION_STRICT:-}" ]; then exit 1; fi
    exit 0
fi
echo "servetop: installing prometheus"
bash "$(dirname "$0")/apt_install.sh" --no-install-recommends prometheus
