package tests

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Returns the folder of a module in the module cache.
func moduleFolder(t *testing.T, module string) string {
	t.Helper()
	folder, err := run("go", "-C", "..", "list", "-m", "-f", "{{.Dir}}", module)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(folder)
}

// Renders the charts that Helm's own tests use. A chart that the real helm renders is equal, or refused as impure or
// because it refers to something outside; a chart that the real helm refuses is refused.
func TestHelmsOwnChartsAreEqual(t *testing.T) {
	helm := real(t, "helm")
	root := moduleFolder(t, "helm.sh/helm/v4")
	c := start(t)
	equal, refused := 0, 0
	_ = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "Chart.yaml" || !strings.Contains(name, "testdata") {
			return err
		}
		folder := filepath.Dir(name)
		var all files
		err = filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			below, _ := filepath.Rel(folder, name)
			f := file{path: "chart/" + below}
			if entry.Type()&fs.ModeSymlink != 0 {
				target, err := os.Readlink(name)
				f.link, f.data = true, []byte(target)
				if err != nil {
					return err
				}
			} else if f.data, err = os.ReadFile(name); err != nil {
				return err
			}
			all = append(all, f)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		short, _ := filepath.Rel(root, folder)
		copied := t.TempDir()
		all.write(t, copied)
		want, failure := runReal(t, copied, "helm", "template", "demo", "chart", "-n", "shop", "--kube-version", "1.33.2", "--include-crds")
		r := c.tree("t", all)
		if r.Error == nil {
			r = c.ask("helm", helmRequest(nil))
		}
		switch {
		case r.Error != nil && (r.Error.Kind == "impure" || r.Error.Kind == "outside"):
			t.Logf("%s: %s:%d: %s %s", short, r.Error.File, r.Error.Line, r.Error.Message, r.Error.Advice)
			refused++
		case r.Error != nil && failure == nil:
			t.Errorf("%s: %+v", short, r.Error)
		case r.Error == nil && failure != nil:
			t.Errorf("%s: not refused: %v", short, failure)
		case r.Error == nil && r.printed() != want:
			t.Errorf("%s: %s", short, difference(r.printed(), want))
		case r.Error == nil:
			equal++
		}
		return nil
	})
	t.Logf("%s: %d charts are equal, %d refused", helm, equal, refused)
	if equal < 20 {
		t.Errorf("only %d charts", equal)
	}
}

// The chart that `helm create` makes is where most charts begin.
func TestTheStarterChartIsEqual(t *testing.T) {
	folder := t.TempDir()
	if _, err := runReal(t, folder, "helm", "create", "chart"); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	text.WriteString("# values: on.yaml\n")
	err := fs.WalkDir(os.DirFS(folder), "chart", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(folder, name))
		text.WriteString("-- " + name + " --\n" + string(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	text.WriteString("-- on.yaml --\n{ingress: {enabled: true}, autoscaling: {enabled: true}, serviceAccount: {annotations: {a: b}}}\n")
	compareHelm(t, start(t), text.String())
}

// Builds the trees that the tests of Kustomize's library write. A tree that the real kustomize builds is equal, or refused
// because it refers to something outside; one that it refuses is refused.
func TestKustomizesOwnTreesAreEqual(t *testing.T) {
	real(t, "kustomize")
	names, _ := filepath.Glob(filepath.Join(moduleFolder(t, "sigs.k8s.io/kustomize/api"), "krusty", "*_test.go"))
	c := start(t)
	equal, refused, failed := 0, 0, 0
	for _, name := range names {
		set, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range set.Decls {
			function, is := declaration.(*ast.FuncDecl)
			if !is || function.Body == nil || !strings.HasPrefix(function.Name.Name, "Test") {
				continue
			}
			for _, built := range treesOf(function) {
				label := filepath.Base(name) + " " + function.Name.Name
				folder := t.TempDir()
				built.files.write(t, folder)
				want, failure := runReal(t, folder, "kustomize", "build", built.path)
				r := c.tree("t", built.files)
				if r.Error == nil {
					r = c.ask("kustomize", object{"tree": "t", "path": built.path})
				}
				switch {
				case r.Error != nil && failure != nil:
					failed++
				case r.Error != nil && r.Error.Kind == "outside":
					t.Logf("%s: %s:%d: %s", label, r.Error.File, r.Error.Line, r.Error.Message)
					refused++
				case r.Error != nil:
					t.Errorf("%s: %+v", label, r.Error)
				case failure != nil:
					t.Errorf("%s: not refused: %v", label, failure)
				case strings.Join(r.Kustomize.Documents, "---\n") != want:
					t.Errorf("%s: %s", label, difference(strings.Join(r.Kustomize.Documents, "---\n"), want))
				default:
					equal++
				}
			}
		}
	}
	t.Logf("%d trees are equal, %d refused, %d fail in both", equal, refused, failed)
	if equal < 100 {
		t.Errorf("only %d trees", equal)
	}
}

type builtTree struct {
	files files
	path  string
}

// Collects the trees that a test writes and builds. A tree with a text that is no literal is left out.
func treesOf(function *ast.FuncDecl) []builtTree {
	heads := map[string]string{
		"WriteK": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n",
		"WriteC": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n",
	}
	var built []builtTree
	contents := map[string]string{}
	complete := true
	ast.Inspect(function.Body, func(node ast.Node) bool {
		call, is := node.(*ast.CallExpr)
		if !is {
			return true
		}
		selector, is := call.Fun.(*ast.SelectorExpr)
		if !is || len(call.Args) < 2 {
			return true
		}
		name, isText := literal(call.Args[0])
		name = strings.TrimPrefix(path.Clean("/"+name), "/")
		switch selector.Sel.Name {
		case "WriteK", "WriteC", "WriteF":
			text, is := literal(call.Args[1])
			complete = complete && is && isText
			if selector.Sel.Name != "WriteF" {
				name = path.Join(name, "kustomization.yaml")
			}
			contents[name] = heads[selector.Sel.Name] + text
		case "Run", "RunWithErr":
			if complete && isText && len(contents) > 0 {
				tree := builtTree{path: name}
				if name == "" {
					tree.path = "."
				}
				for name, text := range contents {
					tree.files = append(tree.files, file{path: name, data: []byte(text)})
				}
				built = append(built, tree)
			}
		}
		return true
	})
	return built
}

// Returns the text of a literal, or of a sum of literals.
func literal(node ast.Expr) (string, bool) {
	switch node := node.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(node.Value)
		return text, err == nil && node.Kind == token.STRING
	case *ast.BinaryExpr:
		left, is := literal(node.X)
		right, isToo := literal(node.Y)
		return left + right, is && isToo
	}
	return "", false
}
