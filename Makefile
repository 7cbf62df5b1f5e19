# The two commands of the README: `cargo run --release -- demo`, and `make test`.

.PHONY: quick test check argocd control-plane cosign forge flux packagers registry reproducible fmt lint deny bench fuzz clean-demo

# The loop while one works: formatting, lints, the crates' own tests and the cases of the fixtures.
quick: fmt lint
	cargo test --workspace --lib --test conformance --quiet

# Everything that must pass. Lints compile the benches; nothing here does. Most tests wait for another process,
# so that more of them run at a time than there are cores.
test: export RUST_TEST_THREADS ?= 8
test:
	cargo test --workspace --no-fail-fast

check: fmt lint test deny

# The Kubernetes control plane that tests run against, and kubectl: built once into ~/.cache/berth.
# Needs Go. Tests that find none build it too.
control-plane:
	tests/ready control-plane

# Gitea, the forge that tests run against: built once into ~/.cache/berth. Needs Go and a C compiler. Tests that
# find none build it too.
forge:
	tests/ready forge

# helm and kustomize, which check deploy/: built once into ~/.cache/berth. Needs Go. Tests that find none build them too.
packagers:
	tests/ready packagers

# cosign, which checks signatures of artifacts in tests: built once into ~/.cache/berth. Needs Go. Tests that find none
# build it too.
cosign:
	tests/ready cosign

# distribution, the container registry that tests run against: built once into ~/.cache/berth. Needs Go. Tests that find
# none build it too.
registry:
	tests/ready registry

# Argo CD, which applies folders in tests, and its Redis: built once into ~/.cache/berth. Needs Go and Debian's packages.
argocd:
	tests/ready argocd

# Flux's controllers, which apply folders in tests: built once into ~/.cache/berth. Needs Go.
flux:
	tests/ready flux

# Builds a release twice, for both architectures, and compares. Takes half an hour on two cores. Tests compare quicker builds.
reproducible:
	folder=$$(tests/release/ready --profile dist) && diff -r $$folder/one $$folder/two && cat $$folder/one/SHA256SUMS

fmt:
	cargo fmt --all --check

lint:
	cargo clippy --workspace --all-targets --quiet -- -D warnings

# Needs cargo-deny: `cargo install --locked cargo-deny`. Fetches a database of advisories.
deny:
	cargo deny --workspace --all-features check

bench:
	cargo bench -p berth

# Needs a nightly toolchain and cargo-fuzz. One minute each. The tests run what the targets do as well.
fuzz:
	cd fuzz && for target in $$(cargo fuzz list); do cargo fuzz run $$target -- -max_total_time=60 || exit 1; done

clean-demo:
	rm -rf berth-demo
