#!/usr/bin/env bash
# A real llama-server, built from the source that llama-cpp-python's sdist carries, and a tiny random model; made once.
# Prints the folder. Takes 10 to 15 minutes of two cores the first time (needs gcc only), nothing after that.
. "$(dirname "$0")/install_lib.sh"
version=0.3.36
lock_home "llama.cpp-$version" "$locks/llama.cpp.txt" "$here/make_tiny_gguf.py" "$0"
if [ ! -e "$home/.ready" ]; then
    echo "servetop: building llama-server $version into $home (10 to 15 minutes, once)" >&2
    clean_draft
    "${PYTHON:-python3}" -m venv "$draft/tools"
    install "$draft/tools" "$locks/llama.cpp.txt"
    export PATH="$draft/tools/bin:$PATH"
    "$draft/tools/bin/pip" download --quiet --no-deps --no-binary llama-cpp-python --dest "$draft" "llama-cpp-python==$version"
    tar -xzf "$draft"/llama_cpp_python-*.tar.gz -C "$draft"
    # GGML_NATIVE=OFF: a cache folder may be kept for another machine. -O1: a random model of 1 MB needs no more.
    # LLAMA_USE_PREBUILT_UI=OFF: otherwise the build fetches the files of a web page.
    cmake -S "$draft/llama_cpp_python-$version/vendor/llama.cpp" -B "$draft/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
        -DCMAKE_CXX_FLAGS_RELEASE='-O1 -DNDEBUG' -DGGML_NATIVE=OFF -DBUILD_SHARED_LIBS=OFF -DLLAMA_OPENSSL=OFF \
        -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_APP=OFF -DLLAMA_BUILD_UI=OFF \
        -DLLAMA_USE_PREBUILT_UI=OFF > "$draft/build.log"
    ninja -C "$draft/build" llama-server >> "$draft/build.log" || { tail -20 "$draft/build.log" >&2; exit 1; }
    mkdir "$draft/home"
    cp "$draft/build/bin/llama-server" "$draft/home/"
    "$draft/tools/bin/python" "$here/make_tiny_gguf.py" "$draft/home/tiny.gguf"
    "$draft/home/llama-server" --version 2> "$draft/home/version.txt"
    touch "$draft/home/.ready"
    mv "$draft/home" "$home"
fi
use llama.cpp
