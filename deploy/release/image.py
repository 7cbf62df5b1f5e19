"""The image: berth, and the files of Debian that it needs to reach a Git server, in the layout of OCI."""

import hashlib
import json
import os
import pathlib
import urllib.error
import urllib.request
from datetime import datetime, timezone

from archives import Tree, compressed, read_debian

USER = 65532
MIRROR = os.environ.get("BERTH_DEBIAN", "http://deb.debian.org")
# Mirrors keep no version that a newer one replaces; here each is as it was at a moment.
SNAPSHOT = "http://snapshot.debian.org/archive"
LOCKED = json.loads(pathlib.Path(__file__).with_name("debian.json").read_text())


def fetched(package, cache):
    """Returns a locked package of Debian, from the cache, a mirror or the archive of all versions."""
    file = cache / package["sha256"]
    if not file.exists():
        path = package["path"]
        archive = "debian-security" if path.startswith("pool/updates/") else "debian"
        try:
            answer = urllib.request.urlopen(f"{MIRROR}/{archive}/{path}", timeout=120)
        except urllib.error.HTTPError:
            answer = urllib.request.urlopen(f"{SNAPSHOT}/{archive}/{LOCKED['moment']}/{path}", timeout=120)
        part = cache / f".{package['sha256']}.{os.getpid()}"
        with answer:
            part.write_bytes(answer.read())
        part.rename(file)
    content = file.read_bytes()
    # The checksum guards the content, whatever the way here.
    found = hashlib.sha256(content).hexdigest()
    if found != package["sha256"]:
        file.unlink()
        raise SystemExit(f"{package['path']} has the checksum {found}, not {package['sha256']}")
    return content


def system(arch, cache):
    """Returns the tree below berth: programs, libraries and certificates of Debian, and who the user is."""
    tree, authorities = Tree(), []
    for package in LOCKED[arch]:
        control, data = read_debian(fetched(package, cache))
        # Scanners of images read which packages are here.
        about = control.extractfile("./control").read()
        tree.file(f"var/lib/dpkg/status.d/{package['name']}", about)
        for path in package["files"]:
            if path.endswith("/"):
                names = sorted(name for name in data.getnames() if name.startswith(f"./{path}"))
                authorities += [data.extractfile(name).read() for name in names]
                continue
            entry = data.getmember(f"./{path}")
            if entry.issym():
                tree.link(path, entry.linkname)
            else:
                # A hard link gives what it leads to.
                tree.file(path, data.extractfile(entry).read(), entry.mode & 0o755)
    tree.file("etc/ssl/certs/ca-certificates.crt", b"".join(one.rstrip() + b"\n" for one in authorities))
    # ssh and git want their user to be known.
    tree.file("etc/passwd", f"root:x:0:0:root:/:/nonexistent\nberth:x:{USER}:{USER}:berth:/var/cache/berth:/nonexistent\n")
    tree.file("etc/group", f"root:x:0:\nberth:x:{USER}:\n")
    tree.file("etc/nsswitch.conf", "hosts: files dns\n")
    for name in ["bin", "lib", "lib64"]:
        if name != "lib64" or "usr/lib64" in tree.entries:
            tree.link(name, f"usr/{name}")
    for name in ["dev", "proc", "sys"]:
        tree.folder(name)
    tree.folder("tmp", 0o1777)
    tree.folder("var/cache/berth", 0o755, USER)
    return tree


class Layout:
    """An OCI layout in the making: its blobs, by their digests."""

    def __init__(self):
        self.tree = Tree()

    def blob(self, content, kind, **more):
        digest = hashlib.sha256(content).hexdigest()
        self.tree.file(f"blobs/sha256/{digest}", content)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(content)} | more

    def document(self, value, kind, **more):
        return self.blob(json.dumps(value, sort_keys=True, separators=(",", ":")).encode(), kind, **more)


def manifest(layout, arch, programs, cache, labels, moment):
    """Adds the image of one architecture, and returns its descriptor."""
    own = Tree()
    for name, program in programs.items():
        own.file(f"usr/local/bin/{name}", program, 0o755)
    layers = [
        ("the files of Debian that berth needs", system(arch, cache).tar(moment)),
        ("berth", own.tar(moment)),
    ]
    created = datetime.fromtimestamp(moment, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    config = {
        "architecture": arch,
        "os": "linux",
        "created": created,
        "config": {
            "User": f"{USER}:{USER}",
            "Env": ["PATH=/usr/local/bin:/usr/bin", "XDG_CACHE_HOME=/var/cache"],
            "Entrypoint": ["/usr/local/bin/berth"],
            "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(tar).hexdigest()}" for _, tar in layers]},
        "history": [{"created": created, "created_by": name} for name, _ in layers],
    }
    return layout.document(
        {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": layout.document(config, "config.v1+json"),
            "layers": [layout.blob(compressed(tar), "layer.v1.tar+gzip") for _, tar in layers],
        },
        "manifest.v1+json",
        platform={"architecture": arch, "os": "linux"},
    )


def image(programs, cache, version, commit, moment):
    """Returns an OCI layout as an archive, with an image for each architecture, and the digest under which registries have it."""
    layout = Layout()
    labels = {
        "org.opencontainers.image.title": "berth",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.revision": commit,
        "org.opencontainers.image.licenses": "Apache-2.0",
    }
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json"}
    images = [manifest(layout, arch, both, cache, labels, moment) for arch, both in sorted(programs.items())]
    top = layout.document(index | {"manifests": images}, "index.v1+json")
    tagged = top | {"annotations": {"org.opencontainers.image.ref.name": version}}
    layout.tree.file("index.json", json.dumps(index | {"manifests": [tagged]}, sort_keys=True))
    layout.tree.file("oci-layout", '{"imageLayoutVersion":"1.0.0"}')
    return layout.tree.tar(moment), top["digest"]
