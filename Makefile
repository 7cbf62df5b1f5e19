# The two commands of the README: `cargo run --release -- demo`, and `make test`.

.PHONY: test check control-plane fmt lint deny bench fuzz clean-demo

# Everything that must pass.
test:
	cargo test --workspace --all-targets --no-fail-fast
	cargo test --workspace --doc

check: fmt lint test deny

# The Kubernetes control plane that tests run against, and kubectl: built once into ~/.cache/berth.
# Needs Go. The tests build it too, but without showing that they do.
control-plane:
	tests/control-plane/build

fmt:
	cargo fmt --all --check

lint:
	cargo clippy --workspace --all-targets -- -D warnings

# Needs cargo-deny: `cargo install --locked cargo-deny`.
deny:
	cargo deny --workspace --all-features check

bench:
	cargo bench

# Needs a nightly toolchain and cargo-fuzz. One minute each. The tests run what the targets do as well.
fuzz:
	cd fuzz && for target in $$(cargo fuzz list); do cargo fuzz run $$target -- -max_total_time=60 || exit 1; done

clean-demo:
	rm -rf berth-demo
