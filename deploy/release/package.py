"""What people download beside the image: an archive with the programs and their pages, and a Debian package of both."""

import hashlib
import pathlib
import subprocess
import tempfile

from archives import Tree, compressed, debian

ROOT = pathlib.Path(__file__).parents[2]
# Where Debian has the completion script of each shell.
COMPLETIONS = {
    "bash": "share/bash-completion/completions/berth",
    "fish": "share/fish/vendor_completions.d/berth.fish",
    "zsh": "share/zsh/vendor-completions/_berth",
}
TERMS = """Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: berth

Files: *
Copyright: the authors of berth
License: Apache-2.0
 On Debian systems, the text is in /usr/share/common-licenses/Apache-2.0. The crates and modules that are compiled into
 the programs have terms of their own, which the bill of materials of the release lists.
"""


def pages(program):
    """Returns the completion scripts and manual pages, by their paths; the program prints them itself."""
    found = {}
    for shell, path in COMPLETIONS.items():
        found[path] = subprocess.run([program, "completions", shell], check=True, stdout=subprocess.PIPE).stdout
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, "man", "--out", folder], check=True, stderr=subprocess.DEVNULL)
        for page in pathlib.Path(folder).iterdir():
            found[f"share/man/man1/{page.name}"] = page.read_bytes()
    return found


def units(program):
    """Returns the units of systemd, by their names, for a program at this path."""
    for unit in sorted((ROOT / "deploy/systemd").glob("*.service")):
        yield unit.name, unit.read_text().replace("/usr/local/bin/berth ", f"{program} ")


def tarball(programs, pages, version, arch, moment):
    tree = Tree()
    for name, program in programs.items():
        tree.file(f"bin/{name}", program, 0o755)
    for path, content in pages.items():
        tree.file(path, content)
    for name, content in units("/usr/local/bin/berth"):
        tree.file(f"lib/systemd/system/{name}", content)
    tree.file("share/doc/berth/LICENSE", (ROOT / "LICENSE").read_bytes())
    return compressed(tree.tar(moment, f"berth-{version}-linux-{arch}/"))


def deb(programs, pages, version, arch, moment):
    data, control = Tree(), Tree()
    for name, program in programs.items():
        data.file(f"usr/bin/{name}", program, 0o755)
    for path, content in pages.items():
        is_manual = path.startswith("share/man/")
        data.file(f"usr/{path}.gz" if is_manual else f"usr/{path}", compressed(content) if is_manual else content)
    for name, content in units("/usr/bin/berth"):
        data.file(f"usr/lib/systemd/system/{name}", content)
    data.file("usr/share/doc/berth/copyright", TERMS)
    data.file("usr/share/doc/berth/changelog.gz", compressed((ROOT / "CHANGELOG.md").read_bytes()))
    contents = {path: content for path, (entry, content) in sorted(data.entries.items()) if entry.isreg()}
    fields = {
        "Package": "berth",
        # A tilde sorts before the release itself.
        "Version": version.replace("-", "~"),
        "Architecture": arch,
        "Maintainer": "the maintainers of berth <maintainers@berth.invalid>",
        "Installed-Size": str(sum(len(content) for content in contents.values()) // 1024),
        "Depends": "ca-certificates, git (>= 1:2.31)",
        "Recommends": "openssh-client",
        "Section": "admin",
        "Priority": "optional",
        "Description": "GitOps reconciler for many Kubernetes clusters\n"
        " berth decides which workload goes to which cluster of a fleet, renders the\n"
        " manifests of each cluster and publishes them to a branch of a Git repository,\n"
        " from which a syncer in each cluster applies them.",
    }
    control.file("control", "".join(f"{name}: {value}\n" for name, value in fields.items()))
    sums = "".join(f"{hashlib.md5(content).hexdigest()}  {path}\n" for path, content in contents.items())
    control.file("md5sums", sums)
    return debian(moment, control, data)
