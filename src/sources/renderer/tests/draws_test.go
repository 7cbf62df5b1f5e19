package tests

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// Random expressions over draws: one whose output differs between two runs of the real helm is refused, and one that is
// not refused has the output of the real helm.
func TestRandomExpressionsAreRefusedOrEqual(t *testing.T) {
	c := start(t)
	refused, equal := 0, 0
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 2))
		text := chartHead + "-- chart/values.yaml --\nset: given\n" +
			template("text: |", "  "+fmt.Sprintf("{{ %s }}", expression(random, 4)))
		_, all := parseFiles(text)
		c.tree("t", all)
		r := c.ask("helm", helmRequest(nil))
		folder := t.TempDir()
		all.write(t, folder)
		var outputs [2]string
		for i := range outputs {
			out, err := runReal(t, folder, "helm", "template", "demo", "chart", "-n", "shop", "--kube-version", "1.33.2")
			if err != nil {
				t.Fatal(text, err)
			}
			outputs[i] = out
		}
		differs := outputs[0] != outputs[1]
		switch {
		case r.Error != nil && (r.Error.Kind != "impure" || r.Error.Line != 3):
			t.Errorf("%s: %+v", text, r.Error)
		// Two runs after each other see almost the same time.
		case r.Error != nil && !differs && !strings.Contains(text, "now") && !strings.Contains(text, "genCA"):
			t.Errorf("%s: refused, but two runs are equal: %+v", text, r.Error)
		case r.Error == nil && differs:
			t.Errorf("%s: not refused", text)
		case r.Error == nil && r.printed() != outputs[0]:
			t.Errorf("%s: %s", text, difference(r.printed(), outputs[0]))
		case r.Error != nil:
			refused++
		default:
			equal++
		}
	}
	t.Logf("%d refused, %d equal", refused, equal)
	if refused < 5 || equal < 5 {
		t.Errorf("the expressions are too much alike: %d refused, %d equal", refused, equal)
	}
}

func expression(random *rand.Rand, depth int) string {
	leaves := []string{"randAlphaNum 12", "randAlpha 10", "randNumeric 14", "uuidv4", "shuffle \"abcdefghijklm\"", "htpasswd \"u\" \"p\"",
		"(genCA \"a\" 1).Cert | b64enc", "randBytes 9", "now | toString", "printf \"%d\" (randInt 0 1000000000)",
		".Values.set", "\"constant\"", ".Release.Name", ".Values.none | toString"}
	if depth == 0 {
		return leaves[random.IntN(len(leaves))]
	}
	one := func() string { return "(" + expression(random, depth-1-random.IntN(min(depth, 2))) + ")" }
	switch random.IntN(9) {
	case 0:
		return fmt.Sprintf("default %s %s", one(), one())
	case 1:
		return fmt.Sprintf("coalesce .Values.none %s %s", one(), one())
	case 2:
		return fmt.Sprintf("ternary %s %s (eq .Values.set \"given\")", one(), one())
	case 3:
		return fmt.Sprintf("%s | len | toString", one())
	case 4:
		return fmt.Sprintf("%s | %s", one(), []string{"upper", "lower", "sha256sum", "b64enc", "quote", "trunc 8"}[random.IntN(6)])
	case 5:
		return fmt.Sprintf("eq %s %s | toString", one(), one())
	case 6:
		return fmt.Sprintf("printf \"%%s-%%s\" %s %s", one(), one())
	case 7:
		return fmt.Sprintf("dict \"a\" %s \"b\" %s | keys | sortAlpha | join \",\"", one(), one())
	}
	return strings.Trim(one(), " ")
}
