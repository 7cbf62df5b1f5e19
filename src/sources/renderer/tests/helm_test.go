package tests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each file of helm/ is a chart. Its output is that of the real `helm template`, byte for byte.
func TestChartsEqualHelm(t *testing.T) {
	names, err := filepath.Glob("helm/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatal("no charts", err)
	}
	c := start(t)
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			c := &client{t, c.command, c.in, c.out, c.id}
			compareHelm(t, c, string(text))
		})
		c.id += 100
	}
}

// Renders a chart with both. Settings of the text: release, namespace, kube, apis, flags (words of the request, separated by
// spaces; `no-crds`, `no-hooks` and `no-tests` leave those out), values (files, the last one wins), warning (a part of one).
func compareHelm(t *testing.T, c *client, text string) {
	t.Helper()
	settings, all := parseFiles(text)
	get := func(key, otherwise string) string {
		if value, is := settings[key]; is {
			return value
		}
		return otherwise
	}
	if r := c.tree("t", all); r.Error != nil {
		t.Fatalf("the tree: %+v", r.Error)
	}
	request := helmRequest(object{"release": get("release", "demo"), "namespace": get("namespace", "shop"),
		"kubeVersion": get("kube", "1.33.2")})
	args := []string{"template", get("release", "demo"), "chart", "-n", get("namespace", "shop"), "--kube-version", get("kube", "1.33.2")}
	flags := strings.Fields(settings["flags"])
	has := func(flag string) bool {
		for _, f := range flags {
			if f == flag {
				return true
			}
		}
		return false
	}
	if has("no-crds") {
		request["crds"] = false
	} else {
		args = append(args, "--include-crds")
	}
	if has("no-hooks") {
		request["hooks"] = false
		args = append(args, "--no-hooks")
	}
	if has("no-tests") {
		request["tests"] = false
		args = append(args, "--skip-tests")
	}
	if has("upgrade") {
		request["upgrade"] = true
		args = append(args, "--is-upgrade")
	}
	if has("lookup-empty") {
		request["lookup"] = "empty"
	}
	if apis := strings.Fields(settings["apis"]); len(apis) > 0 {
		request["apiVersions"] = apis
		args = append(args, "--api-versions", strings.Join(apis, ","))
	}
	var documents []object
	for _, name := range strings.Fields(settings["values"]) {
		for _, f := range all {
			if f.path == name {
				documents = append(documents, object{"name": name, "text": string(f.data)})
			}
		}
		args = append(args, "-f", name)
	}
	request["values"] = documents
	r := c.ask("helm", request)
	if r.Error != nil {
		t.Fatalf("%s: %s:%d: %s\n%s", r.Error.Kind, r.Error.File, r.Error.Line, r.Error.Message, r.Error.Advice)
	}
	got := r.printed()
	for _, part := range strings.Split(settings["contains"], " | ") {
		if !strings.Contains(got, part) {
			t.Errorf("the output has no %q:\n%s", part, got)
		}
	}
	if warning := settings["warning"]; !strings.Contains(strings.Join(r.Helm.Warnings, "\n"), warning) {
		t.Errorf("no warning has %q: %q", warning, r.Helm.Warnings)
	}
	folder := t.TempDir()
	all.write(t, folder)
	want, err := runReal(t, folder, "helm", args...)
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Error(difference(got, want))
	}
}
