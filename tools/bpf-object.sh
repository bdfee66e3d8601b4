#!/usr/bin/env bash
# bpf-object.sh [FILE]
# Compiles the controller's BPF program to FILE, by default the object that is checked in. Only a change of
# crates/kernel/src/bpf needs this; another compiler than the one named here makes another file.
set -euo pipefail
cd "$(dirname "$0")/../crates/kernel/src/bpf"

CLANG=${CLANG:-clang-14}
STRIP=${STRIP:-llvm-strip-14}
out=${1:-main.bpf.o}

command -v "$CLANG" >/dev/null || { echo "error: needs $CLANG (sudo apt-get install clang-14 llvm-14)" >&2; exit 1; }
"$CLANG" -g -O2 -Wall -Werror -target bpf -mcpu=v3 -fdebug-compilation-dir=. -c main.bpf.c -o "$out"
"$STRIP" -g "$out"
