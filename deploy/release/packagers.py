"""The descriptions by which package managers of others install the archives of a release: Homebrew (on Linux), Krew and
Arch's makepkg. They name an address and a checksum, so they are made where the address of the release is known."""

ABOUT = "Put workloads on many Kubernetes clusters from one Git repository"
# What the managers call the architectures.
BREW = {"amd64": "intel", "arm64": "arm"}
ARCH = {"amd64": "x86_64", "arm64": "aarch64"}
SHARE = ("man/man1", "bash-completion/completions", "fish/vendor_completions.d")


def archives(version, sums, downloads):
    """Returns the address and the checksum of the archive of each architecture."""
    for arch in ("amd64", "arm64"):
        name = f"berth-{version}-linux-{arch}.tar.gz"
        if name in sums:
            yield arch, f"{downloads}/{name}", sums[name]


def formula(version, sums, downloads, home):
    parts = "".join(
        f"""
  on_{BREW[arch]} do
    url "{url}"
    sha256 "{digest}"
  end
"""
        for arch, url, digest in archives(version, sums, downloads)
    )
    return f"""class Berth < Formula
  desc "{ABOUT}"
  homepage "{home}"
  version "{version}"
  license "Apache-2.0"
  depends_on :linux
  depends_on "git"
{parts}
  def install
    bin.install "bin/berth", "bin/berth-renderer"
    man1.install Dir["share/man/man1/*"]
    bash_completion.install "share/bash-completion/completions/berth"
    fish_completion.install "share/fish/vendor_completions.d/berth.fish"
    zsh_completion.install "share/zsh/vendor-completions/_berth"
  end

  test do
    assert_equal "berth #{{version}}", shell_output("#{{bin}}/berth --version").strip
  end
end
"""


def plugin(version, sums, downloads, home):
    """Returns the manifest of a plugin of kubectl: `kubectl berth` is `berth`."""
    platforms = "".join(
        f"""  - selector: {{matchLabels: {{os: linux, arch: {arch}}}}}
    uri: {url}
    sha256: {digest}
    files:
    - {{from: berth-{version}-linux-{arch}/bin/berth, to: .}}
    - {{from: berth-{version}-linux-{arch}/bin/berth-renderer, to: .}}
    - {{from: berth-{version}-linux-{arch}/share/doc/berth/LICENSE, to: .}}
    bin: berth
"""
        for arch, url, digest in archives(version, sums, downloads)
    )
    return f"""apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: berth
spec:
  version: v{version}
  homepage: {home}
  shortDescription: {ABOUT}
  description: |
    berth decides which clusters of a fleet run which workloads, and publishes each cluster's manifests to a branch.
    `kubectl berth plan` shows what a change does to every cluster.
  platforms:
{platforms}"""


def pkgbuild(version, sums, downloads, home):
    found = list(archives(version, sums, downloads))
    names = " ".join(f"'{ARCH[arch]}'" for arch, _, _ in found)
    sources = "".join(
        f"source_{ARCH[arch]}=('{url}')\nsha256sums_{ARCH[arch]}=('{digest}')\n" for arch, url, digest in found
    )
    return f"""pkgname=berth-bin
pkgver={version}
pkgrel=1
pkgdesc='{ABOUT}'
arch=({names})
url='{home}'
license=('Apache-2.0')
depends=('git')
provides=('berth')
conflicts=('berth')
{sources}
package() {{
  cd "$srcdir"/berth-"$pkgver"-linux-*
  install -Dm755 -t "$pkgdir/usr/bin" bin/*
  install -Dm644 share/doc/berth/LICENSE "$pkgdir/usr/share/licenses/$pkgname/LICENSE"
  for folder in {" ".join(SHARE)}; do
    install -Dm644 -t "$pkgdir/usr/share/$folder" "share/$folder"/*
  done
  install -Dm644 share/zsh/vendor-completions/_berth "$pkgdir/usr/share/zsh/site-functions/_berth"
}}
"""


def descriptions(version, sums, downloads, home):
    """Returns the three files, by their names. `downloads` is the address below which the archives are."""
    given = (version, sums, downloads.rstrip("/"), home)
    return {"berth.rb": formula(*given), "berth.krew.yaml": plugin(*given), "PKGBUILD": pkgbuild(*given)}
