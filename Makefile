# The two commands of the README: `cargo run --profile demo -- demo`, and `make test`.

.PHONY: quick test test-all record check beds reproducible fmt lint deny bench book fuzz clean-demo

export TMPDIR := $(shell tests/tools/scratch)

# More tests run at a time than there are cores, since many wait for another process.
RUST_TEST_THREADS ?= $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN) * 4 )))
export RUST_TEST_THREADS

# The command lines that tests run are recorded there, and the book is held against them.
BERTH_TEST_RECORD ?= $(abspath $(or $(CARGO_TARGET_DIR),target))/record

LAST := book::each_command_was_run_by_a_test

# The loop while one works: formatting, lints, the crates' own tests with fewer random ones, and the cases of the fixtures.
quick: fmt lint
	BERTH_HISTORIES=15 BERTH_SCHEDULES=30 cargo test --workspace --lib --test conformance --quiet

# What needs Rust, a C compiler and git alone.
test:
	cargo test --workspace --no-fail-fast
	@tests/tools/left-out

# Everything: the plain tests first, then those with Kubernetes, a forge, a registry, Flux, Argo CD and more. The last one
# holds the commands of the book against those that tests ran.
test-all: export BERTH_TEST_RECORD := $(BERTH_TEST_RECORD)
test-all: record test beds
	cargo test --test it --no-fail-fast -- --ignored --skip $(LAST)
	cargo test --test it -- --ignored $(LAST)

record:
	@tests/tools/record $(BERTH_TEST_RECORD)

check: fmt lint test-all deny

# Makes the programs of others that `make test-all` runs. Takes about forty minutes, once. Needs Go, Node and Debian's packages.
beds:
	tests/ready
	tests/release/ready >/dev/null

# Builds a release twice, for both architectures, and compares. Takes half an hour on two cores. Tests compare quicker builds.
reproducible:
	folder=$$(tests/release/ready --profile release) && diff -r $$folder/one $$folder/two && cat $$folder/one/SHA256SUMS

fmt:
	cargo fmt --all --check

lint:
	cargo clippy --workspace --all-targets --quiet -- -D warnings

# Needs cargo-deny: `cargo install --locked cargo-deny`. Fetches a database of advisories.
deny:
	cargo deny --workspace --all-features check

bench:
	cargo bench -p berth

# Needs mdBook: `cargo install --locked mdbook`. The pages are in target/book.
book:
	mdbook build docs

# Needs a nightly toolchain and cargo-fuzz. One minute each. The tests run what the targets do as well.
fuzz:
	cd fuzz && for target in $$(cargo fuzz list); do cargo fuzz run $$target -- -max_total_time=60 || exit 1; done

clean-demo:
	rm -rf berth-demo
