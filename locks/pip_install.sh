#!/usr/bin/env bash
# pip_install.sh ENVIRONMENT PIP-ARGUMENT…: installs into a virtual environment, which is made where there is none, and
# made anew where an interruption left it half made. One that installs into it at the same time is waited for. Prints
# the steps, with the seconds since the start; errors and warnings of pip as they are.
set -euo pipefail
environment="$1"; shift
step() { # one line; what takes longer than five seconds is repeated
    doing="$1"
    printf 'servetop: %3d s  %s\n' "$SECONDS" "$doing"
}
package() { # NAME-VERSION (SIZE) of a file with its size
    local file="${1%% (*}"
    echo "$(basename "$file" | cut -d- -f1,2) (${1##*(}"
}
show_steps() { # reads the output of pip
    while true; do
        if IFS= read -r -t 5 line; then
            case "$line" in
                *"Installing build dependencies: started") step "installing the build tools" ;;
                *"Downloading "*" ("*) step "downloading $(package "${line#*Downloading }")" ;;
                *"Building "*" for "*": started") line="${line#* for }"; step "building ${line%% (*}" ;;
                "Installing collected packages: "*) step "installing $(wc -w <<< "${line#*: }") packages" ;;
                "Successfully installed "*) step "installed in $environment" ;;
            esac
        elif [ $? -gt 128 ]; then # a time-out of read
            step "$doing"
        else
            break
        fi
    done
}
mkdir -p "$environment"
exec 9< "$environment"
if command -v flock > /dev/null; then flock 9; fi
if [ -e "$environment/.installing" ]; then find "$environment" -mindepth 1 -delete; fi
touch "$environment/.installing"
if [ ! -x "$environment/bin/pip" ]; then
    step "creating the virtual environment $environment"
    "${PYTHON:-python3}" -m venv "$environment" | show_steps
fi
doing="waiting for pip"
"$environment/bin/pip" install --disable-pip-version-check --progress-bar off "$@" | show_steps
rm "$environment/.installing"
