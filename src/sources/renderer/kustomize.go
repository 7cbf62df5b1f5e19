package main

import (
	"path"
	"regexp"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/openapi"
)

// Builds a kustomization as `kustomize build` does, or refuses it.
func buildKustomization(t *tree, r *kustomizeRequest, l limits) (*kustomizeAnswer, error) {
	folder, err := cleanFolder(r.Path)
	if err != nil {
		return nil, err
	}
	s := &scan{tree: t, seen: map[visit]bool{}}
	if err := s.folder(folder, false); err != nil {
		return nil, err
	}
	memory, err := newTreeFS(t)
	if err != nil {
		return nil, faultf("tree", "%v", err)
	}
	// The last build may have set its own schema, which is global.
	openapi.ResetOpenAPI()
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionUnspecified
	options.LoadRestrictions = types.LoadRestrictionsRootOnly
	options.PluginConfig = types.DisabledPluginConfig()
	warnings := captureLog()
	objects, err := krusty.MakeKustomizer(options).Run(memory, "/"+folder)
	warned := warnings.stop()
	if err != nil {
		return nil, s.fault(err)
	}
	a := &kustomizeAnswer{Documents: []string{}, Warnings: append(append([]string{}, s.warnings...), warned...)}
	count := counter{limits: l}
	for _, object := range objects.Resources() {
		text, err := object.AsYAML()
		if err != nil {
			return nil, faultf("kustomization", "`%s`: %v", object.CurId(), err).at(s.files[0], 0)
		}
		if !utf8.Valid(text) {
			return nil, faultf("output", "`%s` is not UTF-8", object.CurId()).at(s.files[0], 0)
		}
		if err := count.add(string(text)); err != nil {
			return nil, err
		}
		a.Documents = append(a.Documents, string(text))
	}
	return a, nil
}

// A tree as a file system in memory. Kustomize resolves links before it checks whether a file is in its folder.
type treeFS struct {
	filesys.FileSystem
	tree *tree
}

func newTreeFS(t *tree) (filesys.FileSystem, error) {
	if t.memory == nil {
		memory := filesys.MakeFsInMemory()
		for name, data := range t.files {
			if err := memory.WriteFile("/"+name, data); err != nil {
				return nil, err
			}
		}
		t.memory = treeFS{memory, t}
	}
	return t.memory, nil
}

func (fs treeFS) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	return fs.FileSystem.CleanedAbs("/" + fs.tree.real(strings.TrimPrefix(path.Clean("/"+name), "/")))
}

var (
	namedFile  = regexp.MustCompile(`(?:File: |resources from '|file ')([^'\s"]+)`)
	onlyPlugin = regexp.MustCompile(`external plugins disabled; unable to load external plugin '([^']*)'`)
	// What a plugin of Kustomize itself refers to.
	leavesTree = regexp.MustCompile(`the renderer has no network|security; file|must specify --enable-helm|executable file not found`)
	// An address in memory differs from run to run, and equal requests have equal answers.
	memoryAddress = regexp.MustCompile(`0x[0-9a-f]{6,}`)
	// Kustomize tries a file that fails as a folder too.
	triedAsFolder = regexp.MustCompile(`(?s)accumulation err='(.*)': must build at directory: .*`)
	// Words of Kustomize's errors, and the field that they are about.
	aboutField = []struct{ word, field string }{
		{"replacement", "replacements"}, {"patch", "patches"},
		{"configmap", "configMapGenerator"}, {"secret", "secretGenerator"},
		{"component", "components"}, {"var ", "vars"}, {"already registered id", "resources"}, {"replica", "replicas"},
		{"transformer", "transformers"}, {"generator", "generators"}, {"openapi", "openapi"}, {"resource", "resources"},
	}
)

// Turns an error of Kustomize into a fault at the file or field that it is about.
func (s *scan) fault(err error) error {
	message := strings.NewReplacer("'/", "'", "\"/", "\"", "`/", "`").Replace(err.Error())
	message = memoryAddress.ReplaceAllString(message, "0x…")
	if m := triedAsFolder.FindStringSubmatch(message); m != nil {
		message = m[1]
	}
	f := faultf("kustomization", "%s", message)
	if leavesTree.MatchString(message) {
		f.Kind = "outside"
	}
	if m := onlyPlugin.FindStringSubmatch(message); m != nil {
		f = faultf("outside", "`%s` is a plugin", m[1]).advise("Use fields of Kustomize, or commit what the plugin makes.")
		for _, field := range []string{"generators", "transformers", "validators"} {
			if file, line := s.fieldPlace(field); line > 0 {
				return f.at(file, line)
			}
		}
	}
	for _, m := range namedFile.FindAllStringSubmatch(message, -1) {
		for _, file := range s.read {
			if strings.HasSuffix("/"+file, "/"+strings.TrimPrefix(path.Clean(m[1]), "/")) {
				f.File = file
			}
		}
	}
	if f.File != "" {
		if strings.Contains(message, "yaml: ") {
			f.Line = lineOfYAMLError(err)
		}
		return f
	}
	for _, about := range aboutField {
		if strings.Contains(strings.ToLower(message), about.word) {
			if file, line := s.fieldPlace(about.field); line > 0 {
				return f.at(file, line)
			}
		}
	}
	return f.at(s.files[0], 0)
}

// Returns the place of a field in the first kustomization that has it.
func (s *scan) fieldPlace(field string) (string, int) {
	for _, place := range s.fields {
		if strings.EqualFold(place.field, field) {
			return place.file, place.line
		}
	}
	return "", 0
}
