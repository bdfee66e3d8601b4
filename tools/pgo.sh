#!/usr/bin/env bash
# pgo.sh, by `make fast`
# Builds the native module once more, by a profile of roll-outs and simulations (tools/pgo_load.py): the same results, sooner.
set -euo pipefail
cd "$(dirname "$0")/.."

tool=$(rustc --print target-libdir)/../bin/llvm-profdata
[ -x "$tool" ] || { echo "error: needs llvm-profdata as Rust has it: rustup component add llvm-tools" >&2; exit 2; }
profile=$PWD/target/pgo/profile
stamp=.venv/.stamp-native

module() { # FLAG: the module in the environment, built with this
	CARGO_ENCODED_RUSTFLAGS=$1 UV_OFFLINE=1 .venv/bin/maturin develop --release --locked --uv --group build --target-dir target/pgo
}

rm -rf "$stamp" "$profile" "$profile.profdata" # without its stamp, what an interrupt leaves is built anew by `make build`
module "-Cprofile-generate=$profile"
.venv/bin/python tools/pgo_load.py
"$tool" merge --output "$profile.profdata" "$profile"
module "-Cprofile-use=$profile.profdata"
touch "$stamp"
