#!/usr/bin/env bash
# Chromium and its driver, for the test of --web; does nothing where they are, or where apt-get cannot be used.
set -euo pipefail
if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then exit 0; fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "servetop: install chromium and chromedriver to have --web tested; that test is skipped now" >&2
    exit 0
fi
echo "servetop: installing chromium and chromedriver"
bash "$(dirname "$0")/apt_install.sh" chromium chromium-driver
