"""What is in an artifact, and how it came to be: bills of materials (CycloneDX) and the provenance (SLSA)."""

import json
import re

TERMS = re.compile(r"\s*/\s*")


def crates(tree, built, metadata, checksums):
    """Returns the components of a program: the crates of `cargo tree`, and which needs which of them."""
    known = {package["id"]: package for package in metadata["packages"]}
    ours = set(metadata["workspace_members"])

    def reference(package):
        return f"pkg:cargo/{package['name']}@{package['version']}"

    listed = {"pkg:cargo/" + "@".join(line.split(" ")[:2]).replace("@v", "@") for line in tree.splitlines()}
    ids = {id for id, package in known.items() if reference(package) in listed}
    compiled = {message["package_id"] for message in built if message["reason"] == "compiler-artifact"}
    if compiled - ids:
        raise SystemExit(f"cargo compiled what its tree does not list: {sorted(compiled - ids)}")

    components, needs = [], []
    for package in sorted((known[id] for id in ids), key=reference):
        component = {
            "type": "library",
            "bom-ref": reference(package),
            "name": package["name"],
            "version": package["version"],
            "purl": reference(package),
        }
        if package["license"]:
            # The slash is an old form of `OR`.
            component["licenses"] = [{"expression": TERMS.sub(" OR ", package["license"])}]
        if package["id"] not in compiled:
            # A need of a crate that has no build script, in this version.
            component["scope"] = "excluded"
        checksum = checksums.get((package["name"], package["version"]))
        if checksum:
            component["hashes"] = [{"alg": "SHA-256", "content": checksum}]
        elif package["id"] not in ours:
            raise SystemExit(f"{reference(package)} has no checksum in Cargo.lock")
        components.append(component)
    for node in sorted(metadata["resolve"]["nodes"], key=lambda node: reference(known[node["id"]])):
        if node["id"] in ids:
            there = {one["pkg"] for one in node["deps"] if any(kind["kind"] != "dev" for kind in one["dep_kinds"])}
            depends = sorted(reference(known[id]) for id in there & ids)
            needs.append({"ref": reference(known[node["id"]]), "dependsOn": depends})
    return components, needs


def modules(listing, version):
    """Returns the components of the renderer: the modules that `go version -m` lists, and Go's own library."""
    lines = [line.split() for line in listing.splitlines()]
    found = [tuple(line[1:4]) for line in lines if line[0] == "dep"]
    own = {
        "type": "application",
        "bom-ref": f"pkg:golang/berth.dev/renderer@{version}",
        "name": "berth-renderer",
        "version": version,
        "purl": f"pkg:golang/berth.dev/renderer@{version}",
        "licenses": [{"expression": "Apache-2.0"}],
    }
    go = lines[0][-1].removeprefix("go")
    components = [own]
    for name, number, checksum in sorted([*found, ("stdlib", go, "")]):
        reference = f"pkg:golang/{name}@{number}"
        component = {"type": "library", "bom-ref": reference, "name": name, "version": number, "purl": reference}
        if checksum:
            # The checksum of go.sum is one of all files, which no field of a bill is for.
            component["properties"] = [{"name": "go.sum", "value": checksum}]
        components.append(component)
    return components, [{"ref": own["bom-ref"], "dependsOn": [one["bom-ref"] for one in components[1:]]}]


def packages(locked, arch):
    """Returns the components that an image has beside the program: packages of Debian, of which it holds some files."""
    return [
        {
            "type": "library",
            "bom-ref": f"pkg:deb/debian/{package['name']}@{package['version']}?arch={arch}",
            "name": package["name"],
            "version": package["version"],
            "purl": f"pkg:deb/debian/{package['name']}@{package['version'].replace('+', '%2B')}?arch={arch}&distro=trixie",
            "hashes": [{"alg": "SHA-256", "content": package["sha256"]}],
        }
        for package in locked
    ]


def cyclonedx(name, kind, version, components, needs):
    """Returns a bill of materials. `berth` itself is its subject, and no component."""
    own = f"pkg:cargo/berth@{version}"
    subject = {"type": kind, "bom-ref": own, "name": name, "version": version, "purl": own}
    subject["licenses"] = [{"expression": "Apache-2.0"}]
    bill = {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": subject},
        "components": [one for one in components if one["bom-ref"] != own],
        "dependencies": needs,
    }
    return json.dumps(bill, indent=1) + "\n"


def provenance(subjects, parameters, materials, builder):
    """Returns the statement that these artifacts were built so, of these materials."""
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": digest}} for name, digest in sorted(subjects.items())],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "https://berth.dev/release/v1",
                "externalParameters": parameters,
                "resolvedDependencies": materials,
            },
            "runDetails": {"builder": {"id": builder}},
        },
    }
    return json.dumps(statement, indent=1) + "\n"
