#!/usr/bin/env bash
# A real llama-server, built from the source that llama-cpp-python's sdist carries, and a tiny random model; made once.
# Prints the folder. Takes 10 to 15 minutes of two cores the first time (needs gcc only), nothing after that.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
version=0.3.36
key="llama.cpp-$version-$(cat "$here/make_tiny_gguf.py" "$0" | sha256sum | cut -c1-12)"
cache="${XDG_CACHE_HOME:-$HOME/.cache}/servetop-integration"
home="$cache/$key"
mkdir -p "$cache"
exec 9> "$cache/$key.lock"
flock 9  # two runs on one machine: the second waits for the first one's build
if [ ! -e "$home/.ready" ]; then
    echo "servetop: building llama-server $version into $home (10 to 15 minutes, once)" >&2
    rm -rf "$home" "$cache/$key.making".*
    making="$(mktemp -d "$cache/$key.making.XXXX")"
    trap 'rm -rf "$making"' EXIT
    "${PYTHON:-python3}" -m venv "$making/tools"
    "$making/tools/bin/pip" install --quiet --disable-pip-version-check gguf==0.19.0 tokenizers==0.23.1
    export PATH="$PATH:$making/tools/bin"
    command -v cmake > /dev/null || "$making/tools/bin/pip" install --quiet cmake
    command -v ninja > /dev/null || "$making/tools/bin/pip" install --quiet ninja
    "$making/tools/bin/pip" download --quiet --no-deps --no-binary llama-cpp-python --dest "$making" "llama-cpp-python==$version"
    tar -xzf "$making"/llama_cpp_python-*.tar.gz -C "$making"
    # GGML_NATIVE=OFF: a cache folder may be kept for another machine. -O1: a random model of 1 MB needs no more.
    # LLAMA_USE_PREBUILT_UI=OFF: otherwise the build fetches the files of a web page.
    cmake -S "$making/llama_cpp_python-$version/vendor/llama.cpp" -B "$making/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
        -DCMAKE_CXX_FLAGS_RELEASE='-O1 -DNDEBUG' -DGGML_NATIVE=OFF -DBUILD_SHARED_LIBS=OFF -DLLAMA_OPENSSL=OFF \
        -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_APP=OFF -DLLAMA_BUILD_UI=OFF \
        -DLLAMA_USE_PREBUILT_UI=OFF > "$making/build.log"
    ninja -C "$making/build" llama-server >> "$making/build.log" || { tail -20 "$making/build.log" >&2; exit 1; }
    mkdir "$making/home"
    cp "$making/build/bin/llama-server" "$making/home/"
    "$making/tools/bin/python" "$here/make_tiny_gguf.py" "$making/home/tiny.gguf"
    "$making/home/llama-server" --version 2> "$making/home/version.txt"
    touch "$making/home/.ready"
    mv "$making/home" "$home"
fi
ln -sfn "$home" "$cache/llama.cpp"
echo "$home"
