#!/usr/bin/env bash
# apt_install.sh [APT-GET OPTION…] PACKAGE…: installs Debian packages. An installation that was interrupted before is
# finished first; one that runs beside it, also another clone's, is waited for. Quiet, unless it fails. Versions are
# those of the machine's Debian release: its archive has one of each package, so none can be pinned here.
set -euo pipefail
if [ "$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then
    echo "servetop: cannot install ${*: -1}: that needs root and apt-get" >&2
    exit 1
fi
export DEBIAN_FRONTEND=noninteractive
log="$(mktemp)"
trap 'code=$?; [ $code = 0 ] || tail -5 "$log" >&2; rm -f "$log"; exit $code' EXIT
exec 8> "${TMPDIR:-/tmp}/servetop-apt.lock"
flock 8
apt() { apt-get -qq -y -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 "$@" >> "$log" 2>&1; }
configure() {  # half-configured packages, left by an interrupted installation; the dpkg of a killed apt-get may go on
    for _ in $(seq 600); do
        if LC_ALL=C dpkg --configure -a >> "$log" 2>&1; then return; fi
        tail -4 "$log" | grep -q 'locked by another process' || return 0
        sleep 1
    done
}
configure
apt update
apt --fix-broken install
apt install "$@"
