package tests

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// Random documents of values, with nulls, clashes and subcharts, merge as in the real helm.
func TestRandomValuesMergeAsHelms(t *testing.T) {
	c := start(t)
	for seed := range uint64(24) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			inner := &client{t, c.command, c.in, c.out, c.id}
			defer func() { c.id = inner.id }()
			var text strings.Builder
			names := []string{"one.yaml", "two.yaml", "three.yaml"}[:1+random.IntN(3)]
			fmt.Fprintf(&text, "# values: %s\n-- chart/Chart.yaml --\napiVersion: v2\nname: c\nversion: 0.1.0\n", strings.Join(names, " "))
			text.WriteString("dependencies:\n- {name: sub, version: 0.1.0, condition: 'a.b,sub.a', tags: [c], import-values: [{child: b, parent: d}]}\n")
			fmt.Fprintf(&text, "-- chart/values.yaml --\n%s\n", randomTable(random, 3))
			text.WriteString("-- chart/charts/sub/Chart.yaml --\n{apiVersion: v2, name: sub, version: 0.1.0}\n")
			fmt.Fprintf(&text, "-- chart/charts/sub/values.yaml --\n%s\n", randomTable(random, 3))
			for _, name := range names {
				fmt.Fprintf(&text, "-- %s --\n%s\n", name, randomTable(random, 3))
			}
			for _, folder := range []string{"chart", "chart/charts/sub"} {
				fmt.Fprintf(&text, "-- %s/templates/x.yaml --\nkind: X\nvalues: {{ toJson .Values }}\nprinted: {{ .Values | print | quote }}\n", folder)
			}
			compareHelm(t, inner, text.String())
		})
	}
}

func randomTable(random *rand.Rand, depth int) string {
	text, _ := json.Marshal(randomValue(random, depth, true))
	return string(text)
}

func randomValue(random *rand.Rand, depth int, table bool) any {
	if table || depth > 0 && random.IntN(2) == 0 {
		values := object{}
		for range 1 + random.IntN(4) {
			keys := []string{"a", "b", "c", "d", "sub", "global", "tags"}
			key := keys[random.IntN(len(keys))]
			isTable := key == "sub" || key == "global" || key == "tags"
			values[key] = randomValue(random, depth-1, isTable && depth > 0)
			if isTable && depth <= 0 {
				values[key] = object{"a": 1}
			}
		}
		return values
	}
	scalars := []any{nil, nil, true, false, 1, 1000000, -7, 0.5, 1e21, "text", "", "1e3", "on", []any{1, nil, "x"}, []any{}, object{}}
	return scalars[random.IntN(len(scalars))]
}
