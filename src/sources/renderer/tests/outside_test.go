package tests

import (
	"testing"
)

const (
	configMap   = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"
	resourceOfX = "-- app/x.yaml --\n" + configMap
)

// The kustomization of app/, with these lines.
func kustomization(lines string) string { return "-- app/kustomization.yaml --\n" + lines }

var kustomizeRefusals = []refusal{
	{name: "a repository", files: kustomization("resources:\n- https://github.com/example/repo//base?ref=v1\n"), kind: "outside", place: "app/kustomization.yaml:2", message: "is a remote address", advice: "Vendor"},
	{name: "a repository without a scheme", files: kustomization("resources:\n- x.yaml\n- github.com/example/repo\n") + resourceOfX, kind: "outside", place: "app/kustomization.yaml:3"},
	{name: "a repository over ssh", files: kustomization("resources:\n- git@example.org:a/b.git\n"), kind: "outside", place: "app/kustomization.yaml:2"},
	{name: "a repository with a forced protocol", files: kustomization("resources: ['git::https://example.org/a/b']\n"), kind: "outside", place: "app/kustomization.yaml:1"},
	{name: "a local repository", files: kustomization("resources: ['file:///tmp/repo']\n"), kind: "outside", place: "app/kustomization.yaml:1"},
	{name: "a remote file", files: kustomization("resources:\n- http://example.org/x.yaml\n"), kind: "outside", place: "app/kustomization.yaml:2"},
	{name: "a remote base", files: kustomization("bases:\n- ssh://git@example.org/a/b\n"), kind: "outside", place: "app/kustomization.yaml:2"},
	{name: "a remote component", files: kustomization("components: [\"https://example.org/a/b.git\"]\n"), kind: "outside", place: "app/kustomization.yaml:1"},
	{name: "a remote patch", files: kustomization("resources: [x.yaml]\npatches:\n- path: https://example.org/p.yaml\n") + resourceOfX, kind: "outside", place: "app/kustomization.yaml:3"},
	{name: "a remote file of a ConfigMap", files: kustomization("configMapGenerator:\n- name: a\n  files: [k=https://example.org/a]\n"), kind: "outside", place: "app/kustomization.yaml:3"},
	{name: "a remote file of a Secret", files: kustomization("secretGenerator:\n- name: a\n  envs:\n  - https://example.org/a\n"), kind: "outside", place: "app/kustomization.yaml:4"},
	{name: "a remote schema", files: kustomization("resources: [x.yaml]\nopenapi:\n  path: https://example.org/schema.json\n") + resourceOfX, kind: "outside", place: "app/kustomization.yaml:3"},
	{name: "a remote definition", files: kustomization("resources: [x.yaml]\ncrds: [https://example.org/crd.json]\n") + resourceOfX, kind: "outside", place: "app/kustomization.yaml:2"},
	{name: "a remote configuration", files: kustomization("resources: [x.yaml]\nconfigurations: [https://example.org/c.yaml]\n") + resourceOfX, kind: "outside", place: "app/kustomization.yaml:2"},
	{name: "a remote replacement", files: kustomization("resources: [x.yaml]\nreplacements: [{path: https://example.org/c.yaml}]\n") + resourceOfX, kind: "outside", place: "app/kustomization.yaml:2"},
	{name: "a remote base in a base", files: kustomization("resources: [../base]\n") + "-- base/kustomization.yaml --\nnamePrefix: a\nresources:\n- https://example.org/a/b\n", kind: "outside", place: "base/kustomization.yaml:3"},
	{name: "helmCharts", files: kustomization("helmCharts:\n- name: a\n  repo: https://example.org\n"), kind: "outside", place: "app/kustomization.yaml:1", message: "`helmCharts` runs the program `helm`"},
	{name: "helmChartInflationGenerator", files: kustomization("resources: [x.yaml]\nhelmChartInflationGenerator: [{chartName: a}]\n") + resourceOfX, kind: "outside", place: "app/kustomization.yaml:2"},
	{name: "a generator of charts", files: kustomization("generators: [g.yaml]\n") + "-- app/g.yaml --\napiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: a}\n", kind: "outside", place: "app/g.yaml:1"},
	{name: "a generator", files: kustomization("generators: [g.yaml]\n") + "-- app/g.yaml --\n# x\n---\napiVersion: example.org/v1\nkind: Maker\nmetadata: {name: a}\n", kind: "outside", place: "app/g.yaml:3", message: "`Maker` is a plugin"},
	{name: "a transformer that runs a program", files: kustomization("resources: [x.yaml]\ntransformers: [t.yaml]\n") + resourceOfX + "-- app/t.yaml --\napiVersion: v1\nkind: T\nmetadata:\n  name: a\n  annotations:\n    config.kubernetes.io/function: |\n      exec: {path: ./run.sh}\n", kind: "outside", place: "app/t.yaml:6", message: "is a function"},
	{name: "a transformer in a container", files: kustomization("resources: [x.yaml]\ntransformers:\n- |-\n  apiVersion: v1\n  kind: T\n  metadata: {name: a, annotations: {config.kubernetes.io/function: \"container: {image: i}\"}}\n") + resourceOfX, kind: "outside", place: "app/kustomization.yaml:6"},
	{name: "a transformer with an old annotation", files: kustomization("resources: [x.yaml]\ntransformers: [t.yaml]\n") + resourceOfX + "-- app/t.yaml --\napiVersion: v1\nkind: T\nmetadata: {name: a, annotations: {config.k8s.io/function: x}}\n", kind: "outside", place: "app/t.yaml:3"},
	{name: "a validator", files: kustomization("resources: [x.yaml]\nvalidators: [t.yaml]\n") + resourceOfX + "-- app/t.yaml --\napiVersion: example.org/v1\nkind: Check\nmetadata: {name: a}\n", kind: "outside", place: "app/t.yaml:1"},
	{name: "a folder of plugins", files: kustomization("resources: [x.yaml]\ntransformers: [more]\n") + resourceOfX + "-- app/more/kustomization.yaml --\nresources: [t.yaml]\n-- app/more/t.yaml --\napiVersion: example.org/v1\nkind: T\nmetadata: {name: a}\n", kind: "outside", place: "app/more/t.yaml:1"},
	{name: "a generated plugin", files: kustomization("resources: [x.yaml]\ntransformers: [more]\n") + resourceOfX + "-- app/more/kustomization.yaml --\nconfigMapGenerator: [{name: a, literals: [a=b]}]\n", kind: "outside", place: "app/kustomization.yaml:2", message: "`ConfigMap` is a plugin"},
	{name: "a plugin of Kustomize with an address", files: kustomization("resources: [x.yaml]\ntransformers: [t.yaml]\n") + resourceOfX + "-- app/t.yaml --\napiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: a}\npath: https://example.org/p.yaml\n", kind: "outside", place: "app/kustomization.yaml:2", message: "no network"},
	{name: "a plugin of Kustomize with a file of another folder", files: kustomization("resources: [x.yaml]\ntransformers: [t.yaml]\n") + resourceOfX + "-- app/t.yaml --\napiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: a}\npath: ../p.yaml\n-- p.yaml --\nx\n", kind: "outside", place: "app/kustomization.yaml:2", message: "security"},
	{name: "a folder of resources that is a folder of plugins too", files: kustomization("resources: [more]\ntransformers: [more]\n") + "-- app/more/kustomization.yaml --\nresources: [x.yaml]\n-- app/more/x.yaml --\n" + configMap, kind: "outside", place: "app/more/x.yaml:1", message: "is a plugin"},
	{name: "a file of another folder", files: kustomization("resources:\n- ../base/x.yaml\n") + "-- base/x.yaml --\n" + configMap, kind: "outside", place: "app/kustomization.yaml:2", message: "not in or below `app`"},
	{name: "an absolute file", files: kustomization("resources: [/base/x.yaml]\n") + "-- base/x.yaml --\n" + configMap, kind: "outside", place: "app/kustomization.yaml:1"},
	{name: "a patch of another folder", files: kustomization("resources: [x.yaml]\npatches: [{path: ../p.yaml}]\n") + resourceOfX + "-- p.yaml --\n" + configMap, kind: "outside", place: "app/kustomization.yaml:2"},
	{name: "a file of a ConfigMap of another folder", files: kustomization("configMapGenerator:\n- files: [../secret]\n  name: a\n") + "-- secret --\nx\n", kind: "outside", place: "app/kustomization.yaml:2"},
	{name: "a link to another folder", files: kustomization("resources: [l.yaml]\n") + "-- app/l.yaml -> ../x.yaml --\n-- x.yaml --\n" + configMap, kind: "outside", place: "app/kustomization.yaml:1"},
	{name: "a folder out of the tree", files: kustomization("resources:\n- ../../other\n"), kind: "outside", place: "app/kustomization.yaml:2", message: "leads out of the tree"},
	{name: "a schema that refers to a file", files: kustomization("resources: [x.yaml]\nopenapi: {path: s.json}\n") + resourceOfX + "-- app/s.json --\n{\"definitions\":\n {\"a\": {\"$ref\": \"other.json#/a\"}}}\n", kind: "outside", place: "app/s.json:2"},
	{name: "a definition that refers to an address", files: kustomization("resources: [x.yaml]\ncrds: [s.json]\n") + resourceOfX + "-- app/s.json --\n{\"a\": {\"$ref\": \"https://example.org/a\"}}\n", kind: "outside", place: "app/s.json:1"},
	{name: "a missing file", files: kustomization("resources:\n- x.yaml\n- y.yaml\n") + resourceOfX, kind: "kustomization", place: "app/kustomization.yaml:3", message: "`y.yaml` does not exist"},
	{name: "no kustomization", files: resourceOfX, kind: "kustomization", place: "app/kustomization.yaml"},
	{name: "two kustomizations", files: kustomization("resources: [x.yaml]\n") + resourceOfX + "-- app/Kustomization --\nresources: [x.yaml]\n", kind: "kustomization", place: "app/Kustomization"},
	{name: "an invalid kustomization", files: kustomization("resources: [x.yaml]\nnamePrefix: [\n"), kind: "kustomization", place: "app/kustomization.yaml:3"},
	{name: "an unknown field", files: kustomization("resources: [x.yaml]\nprefix: a\n") + resourceOfX, kind: "kustomization", place: "app/kustomization.yaml", message: "unknown field \"prefix\""},
	{name: "an invalid resource", files: kustomization("resources: [x.yaml]\n") + "-- app/x.yaml --\napiVersion: v1\nkind: a: b\n", kind: "kustomization", place: "app/x.yaml:2"},
	{name: "a resource without a kind", files: kustomization("resources: [x.yaml]\n") + "-- app/x.yaml --\nmetadata: {name: a}\n", kind: "kustomization", place: "app/x.yaml", message: "missing"},
	{name: "a patch without a target", files: kustomization("resources: [x.yaml]\nnamePrefix: a\npatches:\n- patch: |-\n    apiVersion: v1\n    kind: Secret\n    metadata: {name: none}\n") + resourceOfX, kind: "kustomization", place: "app/kustomization.yaml:3", message: "none"},
	{name: "an object twice", files: kustomization("namePrefix: a\nresources: [x.yaml, y.yaml]\n") + resourceOfX + "-- app/y.yaml --\n" + configMap, kind: "kustomization", place: "app/y.yaml", message: "already registered id"},
	{name: "a circle", files: kustomization("resources: [../base]\n") + "-- base/kustomization.yaml --\nresources: [../app]\n", kind: "kustomization", place: "app/kustomization.yaml:1", message: "cycle"},
	{name: "an unknown schema version", files: kustomization("resources: [x.yaml]\nopenapi: {version: v1.2.3}\n") + resourceOfX, kind: "kustomization", place: "app/kustomization.yaml:2", message: "OpenAPI version"},
}

func TestKustomizationsAreRefusedWithTheirPlace(t *testing.T) {
	c := start(t)
	for _, want := range kustomizeRefusals {
		t.Run(want.name, func(t *testing.T) {
			inner := &client{t, c.command, c.in, c.out, c.id}
			defer func() { c.id = inner.id }()
			_, all := parseFiles(want.files)
			if r := inner.tree("t", all); r.Error != nil {
				t.Fatalf("the tree: %+v", r.Error)
			}
			expect(t, inner.ask("kustomize", object{"tree": "t", "path": "app"}), want)
		})
	}
}

var treeRefusals = []refusal{
	{name: "an absolute path", files: "-- /etc/x --\n", place: "/etc/x"},
	{name: "a path upwards", files: "-- a/../../x --\n", place: "a/../../x"},
	{name: "a backslash", files: "-- a\\b --\n", place: "a\\b"},
	{name: "a file twice", files: "-- a --\n-- a --\n", place: "a"},
	{name: "a file that is a folder", files: "-- a --\n-- a/b --\n", place: "a"},
	{name: "a link out of the tree", files: "-- a/l -> ../../x --\n", place: "a/l", message: "outside of the tree"},
	{name: "an absolute link", files: "-- l -> /etc/passwd --\n", place: "l", message: "outside of the tree"},
	{name: "a link to nothing", files: "-- l -> none --\n", place: "l", message: "does not exist"},
	{name: "links in a circle", files: "-- a -> b --\n-- b -> a --\n", place: "a", message: "circle"},
	{name: "a link to its own folder", files: "-- d/l -> ../d --\n-- d/x --\n", place: "d/l/l", message: "contains the link"},
}

func TestTreesAreRefusedWithTheirPath(t *testing.T) {
	c := start(t)
	for _, want := range treeRefusals {
		t.Run(want.name, func(t *testing.T) {
			inner := &client{t, c.command, c.in, c.out, c.id}
			defer func() { c.id = inner.id }()
			_, all := parseFiles(want.files)
			want.kind = "tree"
			expect(t, inner.tree("t", all), want)
		})
	}
	r := c.ask("tree", object{"name": "t", "files": []object{{"path": "module", "mode": "160000", "data": ""}}})
	expect(t, r, refusal{kind: "tree", place: "module", message: "`160000`"})
}
