# Sourced by the install scripts: stops at the first error, and sets `here`, the folder of the scripts, `cache`, that
# of installed engines, outside the source tree, and `locks`, that of the pinned packages of each.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
cache="${XDG_CACHE_HOME:-$HOME/.cache}/servetop-integration"
locks="$here/../../locks/engines"
mkdir -p "$cache"

lock_home() {  # NAME FILE...: sets `home` to the folder for these contents; another run that installs it waits.
    key="$1-$(cat "${@:2}" | sha256sum | cut -c1-12)"
    home="$cache/$key"
    exec 9> "$home.lock"
    flock 9
}

clean_draft() {  # Sets `draft` to an empty folder to build in, which is removed at the end of the script.
    rm -rf "$home" "$home.making".*
    draft="$(mktemp -d "$home.making.XXXX")"
    trap 'rm -rf "$draft"' EXIT
}

environment_over() {  # Makes `home` an environment that also has the packages of another one.
    rm -rf "$home"
    trap '[ -e "$home/.ready" ] || rm -rf "$home"' EXIT  # its scripts name its folder, so it cannot be built elsewhere
    "$1/bin/python" -m venv "$home"
    "$1/bin/python" -c 'import site; print(site.getsitepackages()[0])' > "$(packages_of "$home")/base.pth"
}

install() {  # ENVIRONMENT LOCK: installs the pinned packages, and nothing else; what torch requires is among them.
    "$1/bin/pip" install --quiet --disable-pip-version-check --no-deps --requirement "$2"
}

wait_asleep() {  # ENVIRONMENT: its Python's os.sched_yield sleeps for 50 µs.
    # vLLM's processes wait for each other in a loop of sched_yield for up to a second after every message. On two
    # processors Linux 6.18 then leaves everything else that is ready without one, for up to 39 s measured here:
    # servers that answer no health check, clients that are late, tests that fail at random.
    echo 'import functools, os, time; os.sched_yield = functools.partial(time.sleep, 5e-5)' > "$(packages_of "$1")/wait_asleep.pth"
}

packages_of() {  # Prints the folder of an environment's packages.
    "$1/bin/python" -c 'import site; print(site.getsitepackages()[0])'
}

use() {  # Makes `home` the installation that the tests find by this name, and prints it.
    ln -sfn "$home" "$cache/$1"
    echo "$home"
}
