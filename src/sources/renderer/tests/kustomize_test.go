package tests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each file of kustomize/ is a tree. Its output is that of the real `kustomize build`, byte for byte.
func TestKustomizationsEqualKustomize(t *testing.T) {
	names, err := filepath.Glob("kustomize/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatal("no kustomizations", err)
	}
	c := start(t)
	// The second round shows what a build leaves behind in the process, such as a schema.
	for range 2 {
		for _, name := range names {
			t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
				text, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				compareKustomize(t, &client{t, c.command, c.in, c.out, c.id}, string(text))
			})
			c.id += 100
		}
	}
}

// Builds with both. Settings of the text: path, contains.
func compareKustomize(t *testing.T, c *client, text string) {
	t.Helper()
	settings, all := parseFiles(text)
	path := settings["path"]
	if path == "" {
		path = "app"
	}
	if r := c.tree("t", all); r.Error != nil {
		t.Fatalf("the tree: %+v", r.Error)
	}
	r := c.ask("kustomize", object{"tree": "t", "path": path})
	if r.Error != nil {
		t.Fatalf("%s: %s:%d: %s\n%s", r.Error.Kind, r.Error.File, r.Error.Line, r.Error.Message, r.Error.Advice)
	}
	got := strings.Join(r.Kustomize.Documents, "---\n")
	for _, part := range strings.Split(settings["contains"], " | ") {
		if !strings.Contains(got, part) {
			t.Errorf("the output has no %q:\n%s", part, got)
		}
	}
	if warning := settings["warning"]; !strings.Contains(strings.Join(r.Kustomize.Warnings, "\n"), warning) {
		t.Errorf("no warning has %q: %q", warning, r.Kustomize.Warnings)
	}
	folder := t.TempDir()
	all.write(t, folder)
	want, err := runReal(t, folder, "kustomize", "build", path)
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Error(difference(got, want))
	}
}
