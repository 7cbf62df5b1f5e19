package tests

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The renderer works in an empty root without a network, and gives the same output there.
func TestTheRendererNeedsNoFileAndNoNetwork(t *testing.T) {
	jail := t.TempDir()
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(jail, "renderer"), text, 0o755); err != nil {
		t.Fatal(err)
	}
	free := start(t)
	jailed := &client{t: t}
	jailed.startIn("/renderer", &syscall.SysProcAttr{
		Chroot: jail, Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	})
	for _, name := range []string{"helm/dates.txt", "helm/subcharts.txt", "kustomize/fields.txt", "kustomize/metadata.txt"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		_, all := parseFiles(string(text))
		var outputs []string
		for _, c := range []*client{free, jailed} {
			c.tree("t", all)
			if strings.HasPrefix(name, "helm/") {
				r := c.ask("helm", helmRequest(nil))
				if r.Error != nil {
					t.Fatalf("%+v", r.Error)
				}
				outputs = append(outputs, r.printed())
			} else {
				r := c.ask("kustomize", object{"tree": "t", "path": "app"})
				if r.Error != nil {
					t.Fatalf("%+v", r.Error)
				}
				outputs = append(outputs, strings.Join(r.Kustomize.Documents, "---\n"))
			}
		}
		if outputs[0] != outputs[1] {
			t.Errorf("%s: %s", name, difference(outputs[1], outputs[0]))
		}
	}
}

// Starts the renderer with attributes of the system. Where the system does not allow them, the test is skipped.
func (c *client) startIn(name string, attributes *syscall.SysProcAttr) {
	c.t.Helper()
	c.prepare(name)
	c.command.SysProcAttr = attributes
	c.command.Dir = "/"
	if err := c.command.Start(); err != nil {
		if os.Getenv("CI") == "true" {
			c.t.Fatal(err)
		}
		c.t.Skipf("NOT RUN: no jail is allowed here: %v", err)
	}
}
