package tests

import (
	"fmt"
	"strings"
	"testing"
)

const chartHead = "-- chart/Chart.yaml --\napiVersion: v2\nname: c\nversion: 0.1.0\n"

type refusal struct {
	name string
	// The files, after the Chart.yaml of a chart `c`.
	files string
	// Changes of the request.
	request object
	kind    string
	place   string
	message string
	advice  string
}

// One template in the chart.
func template(lines ...string) string {
	return "-- chart/templates/x.yaml --\nkind: X\n" + strings.Join(lines, "\n") + "\n"
}

var impureCalls = []struct{ call, function string }{
	{`{{ randAlphaNum 8 }}`, "randAlphaNum"}, {`{{ randAlpha 8 }}`, "randAlpha"}, {`{{ randNumeric 1 }}`, "randNumeric"},
	{`{{ randAscii 3 | b64enc }}`, "randAscii"}, {`{{ randBytes 4 }}`, "randBytes"}, {`{{ randInt 0 2 }}`, "randInt"},
	{`{{ uuidv4 }}`, "uuidv4"}, {`{{ shuffle "ab" }}`, "shuffle"}, {`{{ genPrivateKey "rsa" | sha256sum }}`, "genPrivateKey"},
	{`{{ (genCA "a" 1).Cert | b64enc }}`, "genCA"}, {`{{ (genCAWithKey "a" 1 "k").Cert | b64enc }}`, "genCAWithKey"},
	{`{{ (genSelfSignedCert "a" nil nil 1).Key | b64enc }}`, "genSelfSignedCert"},
	{`{{ (genSelfSignedCertWithKey "a" nil nil 1 "k").Cert | b64enc }}`, "genSelfSignedCertWithKey"},
	{`{{ bcrypt "x" }}`, "bcrypt"}, {`{{ htpasswd "u" "p" }}`, "htpasswd"}, {`{{ encryptAES "k" "x" }}`, "encryptAES"},
	{`{{ now }}`, "now"}, {`{{ now | date "2006" }}`, "now"}, {`{{ ago 1700000000 }}`, "ago"},
	{`{{ durationRound (toDate "2006" "2020") }}`, "durationRound"}, {`{{ date "2006" "text" }}`, "date"},
	{`{{ htmlDate nil }}`, "htmlDate"}, {`{{ dateInZone "2006" "x" "UTC" }}`, "dateInZone"},
	{`{{ date_in_zone "2006" "x" "UTC" }}`, "date_in_zone"}, {`{{ htmlDateInZone "x" "UTC" }}`, "htmlDateInZone"},
	{`{{ dateInZone "15:04" 0 "Europe/Paris" }}`, "dateInZone"}, {`{{ getHostByName "localhost" }}`, "getHostByName"},
	{`{{ lookup "v1" "Secret" "n" "s" }}`, "lookup"}, {`{{ lookup "v1" "Secret" "n" "s" | empty }}`, "lookup"},
	{`{{ (genSignedCert "a" nil nil 1 (genCA "ca" 1)).Cert | b64enc }}`, "genSignedCert"},
	{`{{ randAlphaNum 8 | sha256sum | trunc 4 }}`, "randAlphaNum"}, {`{{ if gt (randInt 0 9) 4 }}a{{ end }}`, "randInt"},
	{`{{ mod (randInt 0 12) 3 }}`, "randInt"}, {`{{ if eq (randInt 0 100) 99 }}a{{ end }}`, "randInt"},
	{`{{ if lt (randInt 5 500) 6 }}a{{ end }}`, "randInt"}, {`{{ randAlpha 1 | lower }}`, "randAlpha"},
	{`{{ shuffle "abc" | trunc 1 }}`, "shuffle"}, {`{{ shuffle "aab" | trunc 1 }}`, "shuffle"},
	{`{{ mod (now | unixEpoch) 2 }}`, "now"}, {`{{ mod (randNumeric 3 | int) 7 }}`, "randNumeric"},
}

func TestEachImpureFunctionIsRefused(t *testing.T) {
	c := start(t)
	for _, call := range impureCalls {
		check(t, c, refusal{name: call.call, files: template("pure: 1", "a: "+call.call), kind: "impure", place: "chart/templates/x.yaml:3",
			message: "`" + call.function + "` "})
	}
}

var helmRefusals = []refusal{
	{name: "a default names its value", files: "-- chart/values.yaml --\nauth: {password: ''}\n" +
		template("a: {{ default (randAlphaNum 16) .Values.auth.password }}"),
		kind: "impure", place: "chart/templates/x.yaml:2", message: "`randAlphaNum` is random", advice: "Set the value `auth.password`."},
	{name: "an else names the condition", files: template("{{- if .Values.existingSecret }}", "a: 1", "{{- else }}", "b: {{ randAlpha 5 }}", "{{- end }}"),
		kind: "impure", place: "chart/templates/x.yaml:5", advice: "Set the value `existingSecret`."},
	{name: "a helper is the place, its caller the trace", files: "-- chart/templates/_h.tpl --\n{{- define \"pw\" }}\n{{- randAlphaNum .n }}\n{{- end }}\n" +
		template("a: {{ include \"pw\" (dict \"n\" 5 \"own\" .Values.own) }}"),
		kind: "impure", place: "chart/templates/_h.tpl:2", advice: "Set the value `own`."},
	{name: "a helper that takes the path of a value", files: "-- chart/values.yaml --\nauth: {pw: ''}\n-- chart/templates/_h.tpl --\n{{- define \"pw\" }}{{ randAlphaNum 5 }}{{ end }}\n" +
		template("a: {{ include \"pw\" (dict \"providedValues\" (list \"auth.pw\") \"context\" $) }}"),
		kind: "impure", place: "chart/templates/_h.tpl:1", advice: "Set the value `auth.pw`."},
	{name: "a subchart's value", files: "-- chart/charts/db/Chart.yaml --\n{apiVersion: v2, name: db, version: 1.0.0}\n-- chart/charts/db/templates/s.yaml --\nkind: S\na: {{ .Values.pw | default (randAlpha 9) }}\n",
		kind: "impure", place: "chart/charts/db/templates/s.yaml:2", advice: "Set the value `db.pw`."},
	{name: "an alias's value", files: "-- chart/Chart.yaml --\napiVersion: v2\nname: c\nversion: 0.1.0\ndependencies: [{name: db, version: '*', alias: store}]\n-- chart/charts/folder/Chart.yaml --\n{apiVersion: v2, name: db, version: 1.0.0}\n-- chart/charts/folder/templates/s.yaml --\nkind: S\na: {{ .Values.pw | default (randAlpha 9) }}\n",
		kind: "impure", place: "chart/charts/folder/templates/s.yaml:2", advice: "Set the value `store.pw`."},
	{name: "an address", files: template("a: {{ printf \"%p\" .Values }}"), kind: "impure", place: "chart/templates/x.yaml", message: "line 2", advice: "single values"},
	{name: "a digest of an address", files: template("a: 1", "b: {{ toString . | sha256sum }}"), kind: "impure", place: "chart/templates/x.yaml", message: "line 3"},
	{name: "an address and a draw", files: template("a: {{ default (uuidv4) \"x\" }}", "b: {{ toString . | sha256sum }}"), kind: "impure", place: "chart/templates/x.yaml", message: "line 3"},
	{name: "only the draw that counts", files: template("a: {{ default (randAlphaNum 5) \"x\" }}", "b: {{ default (uuidv4) .Values.id }}", "c: {{ default (genCA \"a\" 1) \"y\" }}"),
		kind: "impure", place: "chart/templates/x.yaml:3", message: "`uuidv4`", advice: "Set the value `id`."},
	{name: "a draw in a hook", files: template("metadata: {annotations: {\"helm.sh/hook\": pre-install}, name: {{ randAlpha 3 }}}"),
		kind: "impure", place: "chart/templates/x.yaml:2"},
	{name: "a draw that fails", files: template("a: {{ if lt (randInt 0 9) 1 }}{{ fail \"unlucky\" }}{{ end }}"),
		kind: "impure", place: "chart/templates/x.yaml:2", message: "`randInt`"},
	{name: "a draw in a value that tpl executes", files: "-- chart/values.yaml --\na: '{{ uuidv4 }}'\n" + template("a: {{ tpl .Values.a . }}"),
		kind: "impure", place: "chart/templates/x.yaml:2", message: "`uuidv4`", advice: "Set the value `a`."},
	{name: "a draw behind a lookup that finds nothing", files: template("{{- $old := lookup \"v1\" \"Secret\" \"n\" \"s\" }}", "a: {{ coalesce .Values.pw ($old.data).pw (randAlphaNum 10) }}"),
		request: object{"lookup": "empty"}, kind: "impure", place: "chart/templates/x.yaml:3", message: "`randAlphaNum`", advice: "Set the value `pw`."},
	{name: "lookup in a condition", files: template("{{- if not (lookup \"v1\" \"Secret\" .Release.Namespace \"s\") }}", "a: 1", "{{- end }}"),
		kind: "impure", place: "chart/templates/x.yaml:2", message: "`lookup` reads the cluster"},
	{name: "files of one name", files: "-- chart/a/x.conf --\n1\n-- chart/b/x.conf --\n2\n" + template("data: {{ (.Files.Glob \"**.conf\").AsConfig | nindent 2 }}"),
		kind: "impure", place: "chart/templates/x.yaml:2", message: "`a/x.conf` and `b/x.conf` have the same name"},
	{name: "files of one name, in a value", files: "-- chart/a/x.conf --\n1\n-- chart/b/x.conf --\n2\n" + template("data: {{ tpl .Values.t . | nindent 2 }}"),
		request: object{"values": []object{{"name": "envs/prod.yaml", "text": "a: 1\nt: '{{ .Files.AsConfig }}'\n"}}}, kind: "impure", place: "envs/prod.yaml:2"},
	{name: "secrets of one name", files: "-- chart/a/x.conf --\n1\n-- chart/b/x.conf --\n2\n" + template("b: 1", "data: {{ .Files.AsSecrets | nindent 2 }}"),
		kind: "impure", place: "chart/templates/x.yaml:3"},
	{name: "two subcharts for one dependency", files: "-- chart/Chart.yaml --\napiVersion: v2\nname: c\nversion: 0.1.0\ndependencies:\n  - {version: '>=1', name: db}\n" +
		"-- chart/charts/a/Chart.yaml --\n{apiVersion: v2, name: db, version: 1.0.0}\n-- chart/charts/b/Chart.yaml --\n{apiVersion: v2, name: db, version: 2.0.0}\n",
		kind: "impure", place: "chart/Chart.yaml", message: "two charts `db`"},
	{name: "two undeclared subcharts of one name", files: "-- chart/charts/a/Chart.yaml --\n{apiVersion: v2, name: db, version: 1.0.0}\n-- chart/charts/b/Chart.yaml --\n{apiVersion: v2, name: db, version: 2.0.0}\n",
		kind: "impure", place: "chart/Chart.yaml", message: "two charts `db`"},
	{name: "env", files: template("a: {{ env \"HOME\" }}"), kind: "chart", place: "chart/templates/x.yaml:2", message: `function "env" not defined`},
	{name: "expandenv", files: template("a: 1", "b: {{ expandenv \"$HOME\" }}"), kind: "chart", place: "chart/templates/x.yaml:3", message: `function "expandenv" not defined`},
	{name: "fail", files: template("a: {{ fail \"no port\" }}"), kind: "chart", place: "chart/templates/x.yaml:2", message: "no port"},
	{name: "required", files: template("a: 1", "b: {{ required \"set the port\" .Values.port }}"), kind: "chart", place: "chart/templates/x.yaml:3", message: "set the port", advice: "`port` (not set)"},
	{name: "fail in a condition", files: "-- chart/values.yaml --\nmin: 3\n" + template("{{- if lt (int .Values.replicas) (int .Values.min) }}", "{{- fail \"too few\" }}", "{{- end }}"),
		request: object{"values": []object{{"name": "prod.yaml", "text": "x: 1\nreplicas: 2\n"}}}, kind: "chart", place: "chart/templates/x.yaml:3", message: "too few",
		advice: "`replicas` (prod.yaml:2), `min` (chart/values.yaml:1)"},
	{name: "a syntax error", files: template("a: {{ if }}"), kind: "chart", place: "chart/templates/x.yaml:2", message: "missing value for if"},
	{name: "a nil pointer", files: template("a: {{ .Values.a.b }}"), kind: "chart", place: "chart/templates/x.yaml:2", message: "nil pointer evaluating interface {}.b"},
	{name: "a function that fails", files: template("a: {{ index (list 1) 5 }}"), kind: "chart", place: "chart/templates/x.yaml:2", message: "`index` fails: "},
	{name: "an invalid certificate", files: template("a: {{ (buildCustomCert \"eA==\" \"eA==\").Cert }}"), kind: "chart", place: "chart/templates/x.yaml:2", message: "`buildCustomCert` fails: "},
	{name: "a certificate built of a new one", files: template("{{- $ca := genCA \"a\" 1 }}", "a: {{ (buildCustomCert ($ca.Cert | b64enc) ($ca.Key | b64enc)).Cert | b64enc }}"),
		kind: "impure", place: "chart/templates/x.yaml:2", message: "`genCA`"},
	{name: "a missing template", files: template("a: {{ include \"none\" . }}"), kind: "chart", place: "chart/templates/x.yaml:2", message: "none"},
	{name: "the notes fail", files: "-- chart/templates/NOTES.txt --\n{{ fail \"in notes\" }}\n", kind: "chart", place: "chart/templates/NOTES.txt:1"},
	{name: "the output is not YAML", files: template("a: b: c"), kind: "chart", place: "chart/templates/x.yaml", message: "line 2"},
	{name: "the output is not UTF-8", files: "-- chart/crds/x.yaml --\na: \xff\n", kind: "output", place: "chart/crds/x.yaml"},
	{name: "Chart.yaml is missing", files: template("a: 1"), request: object{"path": "chart/templates"}, kind: "chart", place: "chart/templates/Chart.yaml"},
	{name: "Chart.yaml is invalid", files: "-- chart/Chart.yaml --\napiVersion: v2\nname: [\n", kind: "chart", place: "chart/Chart.yaml:3"},
	{name: "Chart.yaml has no version", files: "-- chart/Chart.yaml --\n{apiVersion: v2, name: c}\n", kind: "chart", place: "chart/Chart.yaml", message: "version"},
	{name: "a chart of version 3", files: "-- chart/Chart.yaml --\n{apiVersion: v3, name: c, version: 0.1.0}\n", kind: "chart", place: "chart/Chart.yaml"},
	{name: "a library", files: "-- chart/Chart.yaml --\napiVersion: v2\nname: c\nversion: 0.1.0\ntype: library\n", kind: "chart", place: "chart/Chart.yaml:4", message: "library charts are not installable"},
	{name: "a missing dependency", files: "-- chart/Chart.yaml --\napiVersion: v2\nname: c\nversion: 0.1.0\ndependencies:\n  - name: db\n    version: 1.0.0\n    repository: https://example.org\n",
		kind: "chart", place: "chart/Chart.yaml:5", message: "`db` is missing in charts/", advice: "helm dependency build"},
	{name: "the Kubernetes version", files: "-- chart/Chart.yaml --\napiVersion: v2\nname: c\nversion: 0.1.0\nkubeVersion: '>=1.40'\n", kind: "chart", place: "chart/Chart.yaml:4", message: "requires Kubernetes `>=1.40`"},
	{name: "the chart's values are invalid", files: "-- chart/values.yaml --\na: 1\nb: [\n", kind: "chart", place: "chart/values.yaml:3"},
	{name: "values are invalid", request: object{"values": []object{{"name": "prod.yaml", "text": "a: 1\nb: ]\n"}}}, kind: "values", place: "prod.yaml:2"},
	{name: "values of a second document are invalid", request: object{"values": []object{{"name": "prod.yaml", "text": "a: 1\n---\nb: 1\nc: d: e\n"}}}, kind: "values", place: "prod.yaml:4"},
	{name: "values are a list", request: object{"values": []object{{"name": "prod.yaml", "text": "[1]"}}}, kind: "values", place: "prod.yaml"},
	{name: "a subchart's values are a text", files: "-- chart/charts/db/Chart.yaml --\n{apiVersion: v2, name: db, version: 1.0.0}\n", request: object{"values": []object{{"name": "v.yaml", "text": "db: text"}}},
		kind: "values", place: "v.yaml:1", message: "`db`"},
	{name: "values against the schema", files: "-- chart/values.schema.json --\n{\"properties\": {\"image\": {\"properties\": {\"port\": {\"type\": \"integer\"}}}}}\n",
		request: object{"values": []object{{"name": "a.yaml", "text": "x: 1"}, {"name": "b.yaml", "text": "image:\n  tag: a\n  port: text\n"}, {"name": "c.yaml", "text": "y: 1"}}},
		kind:    "values", place: "b.yaml:3", message: "/image/port: got string, want integer"},
	{name: "a subchart's schema", files: "-- chart/charts/db/Chart.yaml --\n{apiVersion: v2, name: db, version: 1.0.0}\n-- chart/charts/db/values.schema.json --\n{\"required\": [\"port\"], \"properties\": {\"size\": {\"maximum\": 3}}}\n",
		request: object{"values": []object{{"name": "a.yaml", "text": "db:\n  size: 9\n"}}}, kind: "values", place: "a.yaml:2", message: "/db/size: maximum"},
	{name: "a required value", files: "-- chart/values.schema.json --\n{\"required\": [\"port\"]}\n", kind: "values", place: "chart/values.schema.json", message: "missing property 'port'"},
	{name: "a schema elsewhere", files: "-- chart/values.schema.json --\n{\"properties\": {\n \"a\": {\"$ref\": \"https://example.org/s.json\"}}}\n", kind: "outside", place: "chart/values.schema.json:2", message: "https://example.org/s.json", advice: "$defs"},
	{name: "a schema in a file", files: "-- chart/values.schema.json --\n{\"$ref\": \"file:///etc/hostname\"}\n", kind: "outside", place: "chart/values.schema.json:1"},
	{name: "a schema beside it", files: "-- chart/values.schema.json --\n{\"$ref\": \"other.json#/a\"}\n-- chart/other.json --\n{}\n", kind: "outside", place: "chart/values.schema.json:1"},
	{name: "a schema of schemas elsewhere", files: "-- chart/values.schema.json --\n{\n\"$schema\": \"https://example.org/meta\"}\n", kind: "outside", place: "chart/values.schema.json:2"},
	{name: "a schema by name", files: "-- chart/values.schema.json --\n{\"$ref\": \"urn:example:x\"}\n", kind: "outside", place: "chart/values.schema.json:1"},
	{name: "a schema that is no JSON", files: "-- chart/values.schema.json --\n{\n\"a\": }\n", kind: "chart", place: "chart/values.schema.json:2"},
	{name: "endless include", files: "-- chart/templates/_h.tpl --\n{{- define \"a\" }}{{ include \"a\" . }}{{ end }}\n" + template("a: {{ include \"a\" . }}"), kind: "chart", place: "chart/templates/", message: "nested reference name"},
	{name: "a release name", request: object{"release": "Not_Valid"}, kind: "request", message: "`Not_Valid` is invalid"},
	{name: "a long release name", request: object{"release": strings.Repeat("a", 54)}, kind: "request"},
	{name: "no Kubernetes version", request: object{"kubeVersion": ""}, kind: "request", message: "kubeVersion"},
	{name: "no namespace", request: object{"namespace": ""}, kind: "request", message: "`namespace` is required"},
	{name: "an unknown policy", request: object{"lookup": "cluster"}, kind: "request", message: "`lookup`"},
	{name: "a path out of the tree", request: object{"path": "../chart"}, kind: "request"},
	{name: "an unknown tree", request: object{"tree": "other"}, kind: "tree-unknown", message: "`other`"},
	{name: "an unknown field", request: object{"postRenderer": "sh"}, kind: "request", message: "postRenderer"},
}

func TestChartsAreRefusedWithTheirPlace(t *testing.T) {
	c := start(t)
	for _, r := range helmRefusals {
		check(t, c, r)
	}
}

func check(t *testing.T, c *client, want refusal) {
	t.Run(want.name, func(t *testing.T) {
		text := want.files
		if !strings.Contains(text, "-- chart/Chart.yaml --") {
			text = chartHead + text
		}
		inner := &client{t, c.command, c.in, c.out, c.id}
		defer func() { c.id = inner.id }()
		_, all := parseFiles(text)
		if r := inner.tree("t", all); r.Error != nil {
			t.Fatalf("the tree: %+v", r.Error)
		}
		first := inner.ask("helm", helmRequest(want.request))
		second := inner.ask("helm", helmRequest(want.request))
		expect(t, first, want)
		if first.Error != nil && second.Error != nil && fmt.Sprint(*first.Error) != fmt.Sprint(*second.Error) {
			t.Errorf("two answers differ: %+v, %+v", first.Error, second.Error)
		}
	})
}

func expect(t *testing.T, r *reply, want refusal) {
	t.Helper()
	if r.Error == nil {
		output := ""
		if r.Helm != nil {
			output = r.printed()
		}
		t.Fatalf("not refused: %s%v", output, r.Kustomize)
	}
	got := r.Error
	place := got.File
	if got.Line > 0 {
		place = fmt.Sprintf("%s:%d", place, got.Line)
	}
	placed := place == want.place || strings.HasSuffix(want.place, "/") && strings.HasPrefix(place, want.place)
	if got.Kind != want.kind || !placed || !strings.Contains(got.Message, want.message) || !strings.Contains(got.Advice, want.advice) {
		t.Errorf(" got: %s at %s: %s\n      %s\nwant: %s at %s: %s\n      %s", got.Kind, place, got.Message, got.Advice, want.kind, want.place, want.message, want.advice)
	}
}
