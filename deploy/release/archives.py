"""Archives whose bytes follow from their content: sorted entries, one owner, one moment, one compression."""

import gzip
import io
import tarfile


class Tree:
    """Files, folders and links by their paths, without a leading slash."""

    def __init__(self):
        self.entries = {}

    def folder(self, path, mode=0o755, owner=0):
        self._add(path, tarfile.DIRTYPE, mode, owner=owner)

    def file(self, path, data, mode=0o644):
        self._add(path, tarfile.REGTYPE, mode, data if isinstance(data, bytes) else data.encode())

    def link(self, path, target):
        self._add(path, tarfile.SYMTYPE, 0o777, target=target)

    def _add(self, path, kind, mode, data=b"", target="", owner=0):
        above = path.rpartition("/")[0]
        if above and above not in self.entries:
            self.folder(above)
        entry = tarfile.TarInfo(path)
        entry.type, entry.mode, entry.linkname, entry.size = kind, mode, target, len(data)
        entry.uid = entry.gid = owner
        entry.uname = entry.gname = "" if owner else "root"
        self.entries[path] = (entry, data)

    def tar(self, moment, prefix=""):
        """Returns the archive; every entry has the moment, in seconds since 1970."""
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for path in sorted(self.entries):
                entry, data = self.entries[path]
                entry = entry.replace(name=prefix + path, mtime=moment, deep=False)
                archive.addfile(entry, io.BytesIO(data))
        return out.getvalue()


def compressed(data):
    out = io.BytesIO()
    with gzip.GzipFile(filename="", fileobj=out, mode="wb", compresslevel=9, mtime=0) as file:
        file.write(data)
    return out.getvalue()


def debian(moment, control, data):
    """Returns a Debian package: an `ar` archive of a version and two trees."""
    members = [
        ("debian-binary", b"2.0\n"),
        ("control.tar.gz", compressed(control.tar(moment, "./"))),
        ("data.tar.gz", compressed(data.tar(moment, "./"))),
    ]
    out = b"!<arch>\n"
    for name, content in members:
        out += f"{name:<16}{moment:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode()
        out += content + b"\n" * (len(content) % 2)
    return out


def read_debian(package):
    """Returns the two archives of a Debian package, which its `ar` archive holds: its control files and its data."""
    found, at = {}, len(b"!<arch>\n")
    while at < len(package):
        name, size = package[at : at + 16].decode().strip(" /"), int(package[at + 48 : at + 58])
        content = package[at + 60 : at + 60 + size]
        if ".tar" in name:
            found[name.split(".")[0]] = tarfile.open(fileobj=io.BytesIO(content))
        at += 60 + size + size % 2
    return found["control"], found["data"]
