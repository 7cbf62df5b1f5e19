#!/usr/bin/env python3
"""A renderer of the tests: it speaks the protocol of src/sources/renderer, and knows one kind of template.

`{{ .Values.NAME }}` is the value of a line `NAME: value`. A template with `fail` fails. A template with a word of
FAULTS makes the renderer itself fail.
"""

import base64, json, re, struct, sys, time

IDENTITY = "fake 1"


def die():
    print("out of luck", file=sys.stderr)
    sys.exit(3)


FAULTS = {
    "crash": die,
    "hang": lambda: time.sleep(600),
    "garbage": lambda: write(b"not JSON"),
    "flood": lambda: sys.stdout.buffer.write(struct.pack(">I", 0xFFFFFFFF)) and sys.stdout.flush(),
    "stop": lambda: sys.exit(0),
}


def write(frame):
    sys.stdout.buffer.write(struct.pack(">I", len(frame)) + frame)
    sys.stdout.flush()


def read():
    head = sys.stdin.buffer.read(4)
    return json.loads(sys.stdin.buffer.read(struct.unpack(">I", head)[0])) if len(head) == 4 else None


def helm(request, files):
    values = {}
    texts = [files.get("values.yaml", "")] + [one["text"] for one in request["values"]]
    for text in texts:
        values.update(re.findall(r'^(\w+): "?([^"\n]*)"?$', text, re.M))
    documents = []
    for path in sorted(files):
        if not path.startswith("templates/"):
            continue
        text = files[path]
        for line, words in enumerate(text.splitlines(), 1):
            for fault in FAULTS:
                if "{{ %s }}" % fault in words:
                    FAULTS[fault]()
            if "{{ fail }}" in words:
                return {"error": {"kind": "chart", "file": path, "line": line, "column": 3, "message": "it fails",
                                  "advice": "Do not fail.", "trace": [{"file": path, "line": line}]}}
        text = re.sub(r"{{ \.Values\.(\w+) }}", lambda found: values.get(found[1], ""), text)
        documents.append({"file": "chart/" + path, "text": text})
    hooks = [{"file": "chart/" + path, "kind": "Job", "name": "migrate", "events": ["pre-install"], "text": ""}
             for path in files if path.startswith("hooks/")]
    crds = [{"file": "chart/" + path, "text": files[path]}
            for path in sorted(files) if path.startswith("crds/") and request["crds"]]
    return {"helm": {"documents": documents, "crds": crds, "hooks": hooks, "dropped": [], "warnings": [],
                     "values": {"auth": {"existingSecret": ""}}}}


def main():
    if "--version" in sys.argv:
        print("berth-renderer protocol 1\n" + IDENTITY)
        return
    trees = {}
    while request := read():
        if tree := request.get("tree"):
            trees[tree["name"]] = {one["path"]: base64.b64decode(one["data"]).decode() for one in tree["files"]}
            answer = {"tree": {"files": len(tree["files"])}}
        elif asked := request.get("helm"):
            answer = helm(asked, trees[asked["tree"]])
        else:
            files = trees[request["kustomize"]["tree"]]
            objects = [files[path] for path in sorted(files) if not path.endswith("kustomization.yaml")]
            answer = {"kustomize": {"documents": objects, "warnings": None}}
        write(json.dumps({"id": request["id"], **answer}).encode())


main()
