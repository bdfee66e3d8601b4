# Everything that `make` sets up lives in .venv and target; results go to out. `make clean` removes them.
SHELL := /bin/bash
.DEFAULT_GOAL := help

PYTHON ?= python3
UV_VERSION := 0.13.8
CARGO_DENY_VERSION := 0.20.2

# One interpreter for every build, so that cargo and maturin share their work; an active environment of the user's is left alone.
export VIRTUAL_ENV := $(CURDIR)/.venv
export PYO3_PYTHON := $(VIRTUAL_ENV)/bin/python
unexport CONDA_PREFIX PYTHONPATH PYTHONHOME

# Newer versions of make hand their jobs on to whatever counts its own, as cargo does, which would then have two.
ALONE := MAKEFLAGS=

UV := .venv/bin/uv
# --inexact keeps what the lock file does not name: pip, uv and the native module.
SYNC := $(UV) sync --frozen --inexact --no-install-project
NATIVE_SOURCES := $(shell find Cargo.toml Cargo.lock $(wildcard crates/*/Cargo.toml crates/*/build.rs crates/*/src \
	python/astraea/models/*.safetensors))

help: ## List the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 16

DEMO := astraea,cubic,newreno,vegas,compound,copa,bbr,bbr3,allegro,vivace,remy,aurora,orca

demo: build ## Set up, compare the shipped policy with twelve other schemes, explain it
	.venv/bin/astraea run three-flows --cc $(DEMO) --trials 3 --out out/demo/three-flows
	.venv/bin/astraea run cellular --cc astraea,cubic,newreno --out out/demo/cellular
	.venv/bin/astraea report out/demo/three-flows out/demo/cellular --out out/demo/report.html
	.venv/bin/astraea explain astraea --out out/demo/explain
	@echo
	@echo "open out/demo/report.html            how the schemes share two links"
	@echo "open out/demo/explain/explain.html   why the policy is fair"

TRAINED ?= out/train/astraea

train: .venv/.stamp-native .venv/.stamp-train ## Set up, train the default policy for five minutes, put it beside an untrained one and the paper
	@test ! -e $(TRAINED) || { echo "$(TRAINED) is there already; remove it, or: make train TRAINED=out/train/another" >&2; exit 2; }
	.venv/bin/astraea train configs/astraea.toml --minutes 5 --out $(TRAINED)
	.venv/bin/astraea train configs/astraea.toml --minutes 0 --quiet --out $(TRAINED)/untrained
	.venv/bin/python bench/train_demo.py $(TRAINED)/policy.safetensors $(TRAINED)/untrained/policy.safetensors

build: .venv/.stamp-native ## Set up the environment and build .venv/bin/astraea

extra-train: .venv/.stamp-native .venv/.stamp-train ## Set up, and install what `astraea train` needs: PyTorch, about 5 GB

extra-export: .venv/.stamp-native .venv/.stamp-export ## Set up, and install what `astraea export` needs: ONNX

test: .venv/.stamp-python ## Set up and run every check and every test
	@tools/system-packages.sh test
	@$(MAKE) --no-print-directory --jobs=2 test-tools .venv/.stamp-native # the one loads while the other compiles
	@$(MAKE) --no-print-directory lint
	cargo test --locked --workspace
	.venv/bin/pytest -n auto

# What the tests need besides the build, one after the other.
test-tools:
	@$(MAKE) --no-print-directory .venv/.stamp-dev
	@$(MAKE) --no-print-directory .venv/.stamp-train
	@$(MAKE) --no-print-directory .venv/.stamp-deny

demo-kernel: build ## As root: iperf3 and three flows under the default policy, CUBIC and BBR of this kernel, over an emulated link
	@test "$$(id -u)" = 0 || { echo "make demo-kernel needs root: it loads a BPF program and makes network namespaces" >&2; exit 2; }
	@command -v iperf3 >/dev/null || { echo "make demo-kernel needs iperf3: apt-get install iperf3" >&2; exit 2; }
	@! test -e /sys/fs/bpf/astraea || { echo "astraea is attached already, and the demo would detach it: astraea detach" >&2; exit 2; }
	@trap '.venv/bin/astraea detach' EXIT; trap 'exit 130' INT TERM; set -e; \
	.venv/bin/astraea attach; \
	.venv/bin/python bench/iperf3.py astraea,cubic,bbr; \
	.venv/bin/astraea run three-flows --backend kernel --cc astraea,cubic,bbr --trials 1 \
		--set flow.0.start.every=10s --set flow.0.duration=30s --out out/demo/kernel

lint: .venv/.stamp-native .venv/.stamp-dev .venv/.stamp-train .venv/.stamp-deny ## Check format, lints, types, licences, documentation
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	.venv/bin/cargo-deny --locked check bans licenses sources
	$(UV) lock --quiet --check
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy
	.venv/bin/stubtest astraea._native
	@$(MAKE) --no-print-directory docs

format: .venv/.stamp-dev ## Format the code and apply the safe fixes
	cargo fmt --all
	.venv/bin/ruff check --fix
	.venv/bin/ruff format

bench: build ## Measure how fast the simulator and the environments are on this machine
	.venv/bin/python bench/sim.py
	.venv/bin/python bench/envs.py

fast: build ## Build the native module once more, by a profile: the same results, a tenth to a quarter sooner
	tools/pgo.sh

docs: .venv/.stamp-dev ## Build the user guide and the crates' documentation
	.venv/bin/zensical build --clean --strict
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps

clean: ## Remove everything that make has built, and the results of the demo
	rm -rf .venv .cache target out python/astraea/_native*.so

# Packages of the system are looked for before anything else is made, and only then: a stamp cannot know that one went away.
$(UV):
	@tools/system-packages.sh build
	$(PYTHON) -m venv .venv
	.venv/bin/pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

.venv/.stamp-python: pyproject.toml uv.lock | $(UV)
	$(SYNC) --no-dev --group build
	@touch $@

.venv/.stamp-dev: pyproject.toml uv.lock | .venv/.stamp-python
	$(SYNC)
	@touch $@

# Training and its tests need PyTorch; mypy reads its types. Nothing else asks for this stamp.
.venv/.stamp-train: pyproject.toml uv.lock | .venv/.stamp-python
	@.venv/bin/python -c "import importlib.util as u; raise SystemExit(u.find_spec('torch') is None)" || \
		echo "installing the extra train, once: PyTorch with its GPU libraries, about 5 GB"
	$(SYNC) --no-dev --group build --extra train
	@touch $@

.venv/.stamp-export: pyproject.toml uv.lock | .venv/.stamp-python
	$(SYNC) --no-dev --group build --extra export
	@touch $@

# Offline and with the group named, so that nothing is installed here that the lock file does not name.
.venv/.stamp-native: .venv/.stamp-python $(NATIVE_SOURCES)
	UV_OFFLINE=1 $(ALONE) .venv/bin/maturin develop --release --locked --uv --group build
	$(ALONE) cargo build --release --locked --package astraead
	@install target/release/astraead .venv/bin/astraead
	@touch $@

# No registry carries a ready-made cargo-deny. Unoptimised it compiles in under a minute and checks in under a second.
.venv/.stamp-deny: | .venv/.stamp-dev
	$(ALONE) cargo install --quiet --locked --root .venv --version $(CARGO_DENY_VERSION) --target-dir target/cargo-deny \
		--config profile.release.opt-level=0 --config profile.release.lto=false cargo-deny
	@rm -rf target/cargo-deny
	@touch $@

.PHONY: help demo demo-kernel train build extra-train extra-export test test-tools lint format bench fast docs clean
