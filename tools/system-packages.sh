#!/usr/bin/env bash
# system-packages.sh build|test
# Installs the Debian or Ubuntu packages that a build, or the tests, need and that are missing; names them when not root.
# A build cannot go on without its packages; a test that misses one is skipped and says so.
set -euo pipefail
cd "$(dirname "$0")/.."

has() { command -v "$1" >/dev/null; }
compiles() { echo '#include <stdio.h>' | cc -E -; }

missing=()
need() { # package, then the command that succeeds where it is not needed
  local package=$1
  shift
  "$@" >/dev/null 2>&1 || missing+=("$package")
}

case "${1:-}" in
build)
  if ! has "${PYTHON:-python3}" || ! "${PYTHON:-python3}" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "error: needs Python 3.11 or newer; name another interpreter with make PYTHON=/path/to/python3" >&2
    exit 1
  fi
  if ! has cargo; then
    echo "error: needs Rust (cargo not found); install it from https://rustup.rs" >&2
    exit 1
  fi
  need gcc has cc
  need libc6-dev compiles
  # libbpf, which loads the controller into the kernel, is compiled with these.
  need make has make
  need pkg-config has pkg-config
  need libelf-dev test -e /usr/include/libelf.h
  need zlib1g-dev test -e /usr/include/zlib.h
  need ca-certificates test -e /etc/ssl/certs/ca-certificates.crt
  need python3-venv "${PYTHON:-python3}" -c 'import ensurepip, venv'
  ;;
test)
  need chromium has chromium
  need fonts-dejavu-core test -e /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf
  need g++ has g++
  need libns3-dev test -e /usr/include/ns3/core-module.h
  need clang-14 has clang-14
  need llvm-14 has llvm-strip-14
  need libgsl-dev test -e /usr/include/gsl/gsl_version.h
  need iperf3 has iperf3
  ;;
*)
  sed -n '2,4p' "$0"
  exit 2
  ;;
esac

[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" = 0 ] && has apt-get; then
  echo "installing system packages: ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  if [ "$1" = test ]; then # Ubuntu has no chromium package, for one
    for package in "${missing[@]}"; do
      apt-cache show "$package" >/dev/null 2>&1 || echo "note: this system has no package $package; the tests that need it are skipped"
    done
    mapfile -t missing < <(apt-cache --no-all-versions show "${missing[@]}" 2>/dev/null | sed -n 's/^Package: //p')
    [ ${#missing[@]} -gt 0 ] || exit 0
  fi
  apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
elif [ "$1" = test ]; then
  echo "note: the tests that need these packages are skipped: ${missing[*]} (sudo apt-get install ${missing[*]})"
else
  echo "error: missing system packages: ${missing[*]} (sudo apt-get install ${missing[*]})" >&2
  exit 1
fi
