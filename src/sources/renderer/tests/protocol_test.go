package tests

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func chartWith(t *testing.T, c *client, name, text string) {
	t.Helper()
	_, all := parseFiles(chartHead + text)
	if r := c.tree(name, all); r.Error != nil {
		t.Fatalf("the tree: %+v", r.Error)
	}
}

func TestHooksAndCRDsStandApart(t *testing.T) {
	c := start(t)
	chartWith(t, c, "t", "-- chart/crds/c.yaml --\nkind: CRD\n-- chart/templates/h.yaml --\nkind: Job\nmetadata:\n  name: j\n  annotations:\n"+
		"    helm.sh/hook: post-install,post-upgrade\n    helm.sh/hook-weight: \"7\"\n    helm.sh/hook-delete-policy: hook-succeeded\n"+
		"-- chart/templates/x.yaml --\nkind: X\n-- chart/values.yaml --\na: {b: 1, c: null}\n")
	chartWith(t, c, "dropped", template("---", "kind: Y", "metadata: {annotations: {helm.sh/hook: 'pre-install,crd-install'}}"))
	if r := c.ask("helm", helmRequest(object{"tree": "dropped"})); len(r.Helm.Dropped) != 1 || r.Helm.Dropped[0].File != "c/templates/x.yaml" || len(r.Helm.Hooks) > 0 {
		t.Errorf("%+v", r.Helm)
	}
	r := c.ask("helm", helmRequest(object{"values": []object{{"name": "v", "text": "a: {d: 2}"}}}))
	if r.Error != nil {
		t.Fatalf("%+v", r.Error)
	}
	h := r.Helm
	if len(h.CRDs) != 1 || len(h.Documents) != 1 || len(h.Hooks) != 1 || h.CRDs[0].File != "c/crds/c.yaml" {
		t.Fatalf("%+v", h)
	}
	if job := h.Hooks[0]; job.Weight != 7 || strings.Join(job.Events, " ") != "post-install post-upgrade" ||
		strings.Join(job.DeletePolicies, " ") != "hook-succeeded" || job.Kind != "Job" || job.Name != "j" || job.File != "c/templates/h.yaml" {
		t.Errorf("%+v", job)
	}
	if a := h.Values["a"].(object); a["b"] != 1.0 || a["d"] != 2.0 || len(a) != 2 {
		t.Errorf("the merged values: %v", h.Values)
	}
}

func TestEachValueHasItsOrigin(t *testing.T) {
	c := start(t)
	chartWith(t, c, "t", "-- chart/values.yaml --\na: 1\nb:\n  c: 2\n  d: 3\ndb:\n  size: 1\nglobal: {g: 1}\n"+
		"-- chart/charts/db/Chart.yaml --\n{apiVersion: v2, name: db, version: 1.0.0}\n-- chart/charts/db/values.yaml --\n# defaults\nport: 1\nsize: 0\n")
	r := c.ask("helm", helmRequest(object{"origins": true, "values": []object{
		{"name": "one.yaml", "text": "b: {c: 5}\nlist: [1]\n"}, {"name": "two.yaml", "text": "x: 1\n---\nb:\n  c: 6\n"}}}))
	if r.Error != nil {
		t.Fatalf("%+v", r.Error)
	}
	var got []string
	for _, o := range r.Helm.Origins {
		got = append(got, fmt.Sprintf("%s=%s:%d", strings.Join(o.Keys, "."), o.File, o.Line))
	}
	want := "a=chart/values.yaml:1 b.c=two.yaml:4 b.d=chart/values.yaml:4 db.global.g=chart/values.yaml:7 db.port=chart/charts/db/values.yaml:2 " +
		"db.size=chart/values.yaml:6 global.g=chart/values.yaml:7 list=one.yaml:2 x=two.yaml:1"
	if strings.Join(got, " ") != want {
		t.Errorf("%s", strings.Join(got, " "))
	}
}

func TestDeclaredAPIVersionsReplaceHelms(t *testing.T) {
	c := start(t)
	chartWith(t, c, "t", template("a: {{ .Capabilities.APIVersions }}"))
	r := c.ask("helm", helmRequest(object{"onlyApiVersions": true, "apiVersions": []string{"v1", "example.org/v1"}}))
	if r.Error != nil || !strings.Contains(r.printed(), "a: [v1 example.org/v1]") {
		t.Errorf("%+v", r)
	}
}

// Two renders of one tree have nothing in common but their tree.
func TestRendersAreApart(t *testing.T) {
	c := start(t)
	chartWith(t, c, "t", template("a: {{ $_ := set .Values \"n\" 1 }}{{ toJson .Values }}", "b: {{ .Values.own }}"))
	first := c.ask("helm", helmRequest(object{"values": []object{{"name": "v", "text": "own: 1"}}}))
	second := c.ask("helm", helmRequest(nil))
	again := c.ask("helm", helmRequest(object{"values": []object{{"name": "v", "text": "own: 1"}}}))
	if first.printed() != again.printed() || !strings.Contains(second.printed(), `{"n":1}`) {
		t.Errorf("%s%s%s", first.printed(), second.printed(), again.printed())
	}
}

// What Go's maps leave open has one order. Without it, the chance of 50 equal renders is nothing.
func TestMapsHaveOneOrder(t *testing.T) {
	c := start(t)
	chartWith(t, c, "t", template("a: {{ keys .Values | join \",\" }} {{ values .Values | join \",\" }} {{ keys (dict \"z\" 1 \"y\" 2) (dict \"x\" 3) }}")+
		"-- chart/values.yaml --\n{a: 5, b: 4, c: 3, d: 2, e: 1}\n")
	for range 50 {
		r := c.ask("helm", helmRequest(nil))
		if !strings.Contains(r.printed(), "a: a,b,c,d,e 5,4,3,2,1 [y z x]") {
			t.Fatal(r.printed())
		}
	}
}

func TestTreesAreForgotten(t *testing.T) {
	c := start(t, "--trees", "2")
	for _, name := range []string{"a", "b"} {
		chartWith(t, c, name, template("a: 1"))
	}
	if r := c.ask("helm", helmRequest(object{"tree": "a"})); r.Error != nil {
		t.Fatalf("%+v", r.Error)
	}
	chartWith(t, c, "c", template("a: 1"))
	for name, kind := range map[string]string{"a": "", "b": "tree-unknown", "c": ""} {
		r := c.ask("helm", helmRequest(object{"tree": name}))
		if kind == "" && r.Error != nil || kind != "" && (r.Error == nil || r.Error.Kind != kind) {
			t.Errorf("%s: %+v", name, r.Error)
		}
	}
}

func TestInvalidFramesAreAnswered(t *testing.T) {
	c := start(t, "--max-frame", "1000")
	for frame, message := range map[string]string{
		"{": "invalid", `{"id": 1}`: "exactly one", `{"id": 1, "tree": {}, "helm": {}}`: "exactly one",
		strings.Repeat(" ", 1001): "--max-frame",
	} {
		c.sendRaw([]byte(frame))
		r, err := c.receive()
		if err != nil || r.Error == nil || !strings.Contains(r.Error.Message, message) {
			t.Errorf("%.20q: %v %+v", frame, err, r)
		}
	}
	chartWith(t, c, "t", template("a: 1"))
}

func TestLimitsAreAnswered(t *testing.T) {
	for name, limit := range map[string]struct {
		flags    []string
		template string
		message  string
		ends     bool
	}{
		"output":       {[]string{"--max-output", "1000"}, template("a: " + strings.Repeat("x", 1000)), "--max-output", false},
		"documents":    {[]string{"--max-documents", "2"}, template("---", "b: 1", "---", "c: 1"), "--max-documents", false},
		"time":         {[]string{"--timeout", "300ms"}, template(`a: {{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}`), "--timeout", true},
		"memory":       {[]string{"--max-memory", "300000000"}, template(`a: {{ range until 100 }}{{ repeat 10000000 "x" }}{{ end }}`), "--max-memory", true},
		"endless tpl":  {[]string{"--max-memory", "500000000", "--timeout", "20s"}, template(`a: {{ tpl .Values.t . }}`) + "-- chart/values.yaml --\nt: '{{ tpl .Values.t . }}'\n", "", true},
		"endless call": {[]string{"--timeout", "20s"}, "-- chart/templates/_h.tpl --\n{{ define \"a\" }}{{ template \"a\" . }}{{ end }}\n" + template(`a: {{ template "a" . }}`), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, limit.flags...)
			chartWith(t, c, "t", limit.template)
			began := time.Now()
			c.id++
			c.sendRaw([]byte(`{"id": 2, "helm": {"tree": "t", "path": "chart", "release": "r", "namespace": "n", "kubeVersion": "1.33.0"}}`))
			r, err := c.receive()
			if took := time.Since(began); took > 25*time.Second {
				t.Errorf("took %v", took)
			}
			if err == nil && (r.Error == nil || !strings.Contains(r.Error.Message, limit.message)) {
				t.Fatalf("%+v", r.Error)
			}
			// A caller takes the end of the process for an answer.
			if err != nil && limit.message != "" {
				t.Fatal(err)
			}
			if limit.ends {
				end := c.command.Wait()
				exit, is := errors.AsType[*exec.ExitError](end)
				if !is || exit.ExitCode() == 0 {
					t.Errorf("the renderer ended with %v", end)
				}
			}
		})
	}
}

// The identity follows from the sources, the libraries and Go. Another place or time of the build is no part of it.
func TestIdentity(t *testing.T) {
	out, err := run(program, "--version")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"berth-renderer protocol 1", "sources sha256:", "helm v4.3.1", "kustomize v5.8.2", "go go1."}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for i, prefix := range want {
		if i >= len(lines) || !strings.HasPrefix(lines[i], prefix) {
			t.Fatalf("line %d is not %q: %s", i+1, prefix, out)
		}
	}
	if version, _ := run(real(t, "helm"), "version", "--short"); !strings.HasPrefix(version, "v4.3.1") {
		t.Errorf("the real helm is %q", version)
	}
	if version, _ := run(real(t, "kustomize"), "version"); !strings.Contains(version, "v5.8.2") {
		t.Errorf("the real kustomize is %q", version)
	}
	module, err := os.ReadFile("../go.mod")
	if err != nil || !strings.Contains(string(module), "helm.sh/helm/v4 v4.3.1\n") {
		t.Errorf("go.mod has another version of Helm: %v", err)
	}
}
