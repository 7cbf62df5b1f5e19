// Package tests holds the renderer against the real helm and kustomize. It runs the program as berth does.
package tests

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var (
	// The program under test.
	program string
	// The folder of the real helm and kustomize, or empty.
	packagers string
)

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "renderer")
	if err != nil {
		panic(err)
	}
	// Go runs the tests again when a file that they read changes.
	sources, _ := filepath.Glob("../*")
	for _, name := range sources {
		_, _ = os.ReadFile(name)
	}
	built, err := run("../build", folder)
	if err != nil {
		panic(err)
	}
	program = strings.TrimSpace(built)
	if found, err := run("../../../../tests/packagers/build"); err == nil {
		packagers = strings.TrimSpace(found)
	} else {
		fmt.Fprintf(os.Stderr, "THE REAL HELM AND KUSTOMIZE ARE MISSING: %v\n", err)
	}
	code := m.Run()
	os.RemoveAll(folder)
	os.Exit(code)
}

func run(name string, args ...string) (string, error) {
	command := exec.Command(name, args...)
	command.Stderr = os.Stderr
	out, err := command.Output()
	return string(out), err
}

// Returns the path of a real program. Without it, the test is skipped, but not in CI.
func real(t *testing.T, name string) string {
	t.Helper()
	if packagers == "" {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the real %s is missing: tests/packagers/build makes it", name)
		}
		t.Skipf("NOT COMPARED: the real %s is missing: tests/packagers/build makes it", name)
	}
	return filepath.Join(packagers, name)
}

// A renderer that runs.
type client struct {
	t       *testing.T
	command *exec.Cmd
	in      io.WriteCloser
	out     io.Reader
	id      uint64
}

func start(t *testing.T, flags ...string) *client {
	t.Helper()
	c := &client{t: t}
	c.prepare(program, flags...)
	if err := c.command.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// Connects the pipes, and ends the renderer with the test.
func (c *client) prepare(name string, flags ...string) {
	c.t.Helper()
	c.command = exec.Command(name, flags...)
	// An environment that would change the output, if the renderer read it.
	c.command.Env = []string{"TZ=Asia/Tokyo", "KUSTOMIZE_ENABLE_MANAGEDBY_LABEL=on", "HELM_NAMESPACE=other", "HOME=/nonexistent"}
	c.command.Stderr = os.Stderr
	var err error
	if c.in, err = c.command.StdinPipe(); err != nil {
		c.t.Fatal(err)
	}
	if c.out, err = c.command.StdoutPipe(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		c.in.Close()
		_ = c.command.Wait()
	})
}

type object = map[string]any

type reply struct {
	ID   uint64
	Tree object
	Helm *struct {
		Chart     object
		CRDs      []document
		Documents []document
		Dropped   []document
		Hooks     []struct {
			document
			Kind, Name                          string
			Events, DeletePolicies, LogPolicies []string
			Weight                              int
		}
		Values  object
		Origins []struct {
			Keys []string
			File string
			Line int
		}
		Warnings []string
	}
	Kustomize *struct {
		Documents []string
		Warnings  []string
	}
	Error *struct {
		Kind, File, Message, Advice string
		Line, Column                int
		Trace                       []object
	}
}

type document struct{ File, Text string }

func (c *client) sendRaw(frame []byte) {
	c.t.Helper()
	if _, err := c.in.Write(binary.BigEndian.AppendUint32(nil, uint32(len(frame)))); err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.in.Write(frame); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) receive() (*reply, error) {
	var size uint32
	if err := binary.Read(c.out, binary.BigEndian, &size); err != nil {
		return nil, err
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(c.out, text); err != nil {
		return nil, err
	}
	var r reply
	return &r, json.Unmarshal(text, &r)
}

// Sends one request and returns its answer.
func (c *client) ask(kind string, body object) *reply {
	c.t.Helper()
	c.id++
	text, err := json.Marshal(object{"id": c.id, kind: body})
	if err != nil {
		c.t.Fatal(err)
	}
	c.sendRaw(text)
	r, err := c.receive()
	if err != nil {
		c.t.Fatalf("no answer: %v", err)
	}
	if r.ID != c.id {
		c.t.Fatalf("the answer has the id %d, the request %d", r.ID, c.id)
	}
	return r
}

// Sends a tree.
func (c *client) tree(name string, files files) *reply {
	c.t.Helper()
	var list []object
	for _, file := range files {
		mode := "100644"
		if file.link {
			mode = "120000"
		}
		list = append(list, object{"path": file.path, "mode": mode, "data": file.data})
	}
	return c.ask("tree", object{"name": name, "files": list})
}

// Returns a request with the fields that every test sets, and those given.
func helmRequest(more object) object {
	r := object{"tree": "t", "path": "chart", "release": "demo", "namespace": "shop", "kubeVersion": "1.33.2",
		"crds": true, "hooks": true, "tests": true}
	for key, value := range more {
		r[key] = value
	}
	return r
}

// Returns what `helm template` would print.
func (r *reply) printed() string {
	var manifest, all strings.Builder
	for _, d := range append(r.Helm.CRDs, r.Helm.Documents...) {
		fmt.Fprintf(&manifest, "---\n# Source: %s\n%s\n", d.File, d.Text)
	}
	fmt.Fprintln(&all, strings.TrimSpace(manifest.String()))
	for _, d := range r.Helm.Hooks {
		fmt.Fprintf(&all, "---\n# Source: %s\n%s\n", d.File, d.Text)
	}
	return all.String()
}

type file struct {
	path string
	data []byte
	link bool
}

type files []file

// Reads the files of a text: "-- path --" begins a file, "-- path -> target --" is a symbolic link, and what stands before
// the first one are settings, "# key: value". In a path `.tgz` after a folder packs what follows it as a chart's archive.
func parseFiles(text string) (map[string]string, files) {
	settings := map[string]string{}
	var all files
	for line := range strings.Lines(text) {
		if head, is := strings.CutPrefix(strings.TrimRight(line, "\n"), "-- "); is && strings.HasSuffix(head, " --") {
			name := strings.TrimSuffix(head, " --")
			if link, target, found := strings.Cut(name, " -> "); found {
				all = append(all, file{link, []byte(target), true})
				all = append(all, file{path: ""})
			} else {
				all = append(all, file{path: name})
			}
			continue
		}
		if len(all) == 0 {
			if key, value, found := strings.Cut(strings.TrimPrefix(line, "# "), ": "); found && strings.HasPrefix(line, "# ") {
				settings[key] = strings.TrimSpace(value)
			}
			continue
		}
		last := &all[len(all)-1]
		last.data = append(last.data, line...)
	}
	kept := files{}
	for _, f := range all {
		if f.path != "" {
			kept = append(kept, f)
		}
	}
	return settings, packed(kept)
}

// Writes files into a folder.
func (fs files) write(t *testing.T, folder string) {
	t.Helper()
	for _, f := range fs {
		name := filepath.Join(folder, f.path)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if f.link {
			err = os.Symlink(string(f.data), name)
		} else {
			err = os.WriteFile(name, f.data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Shows where two texts differ.
func difference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := 0; i < len(g) || i < len(w); i++ {
		if i >= len(g) || i >= len(w) || g[i] != w[i] {
			return fmt.Sprintf("line %d\n got: %s\nwant: %s\n--- got\n%s\n--- want\n%s", i+1,
				strings.Join(g[min(i, len(g)):min(i+3, len(g))], "\n      "), strings.Join(w[min(i, len(w)):min(i+3, len(w))], "\n      "), got, want)
		}
	}
	return ""
}

// Runs a real program with the files of a folder and nothing else.
func runReal(t *testing.T, folder, name string, args ...string) (string, error) {
	t.Helper()
	command := exec.Command(real(t, name), args...)
	command.Dir = folder
	empty := t.TempDir()
	command.Env = []string{"TZ=UTC", "HOME=" + empty, "HELM_NO_PLUGINS=1", "PATH="}
	var out, complaints bytes.Buffer
	command.Stdout, command.Stderr = &out, &complaints
	err := command.Run()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, complaints.String())
	}
	return out.String(), err
}
