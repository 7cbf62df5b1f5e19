package main

import (
	"path"
	"regexp"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// Reads the kustomizations that a build would read, before the build, and refuses what leads out of the tree or runs a
// program. The build itself would refuse most of it too, but without a place: it has no network, no program and no plugin.
type scan struct {
	tree     *tree
	seen     map[visit]bool
	files    []string
	read     []string
	fields   []fieldPlace
	warnings []string
}

type visit struct {
	folder  string
	plugins bool
}

type fieldPlace struct {
	field string
	file  string
	line  int
}

// The fields with paths. A field's items are paths, or tables with paths under some keys.
var pathFields = []struct {
	name    string
	keys    []string
	folders bool
	inline  bool
}{
	{name: "resources", folders: true}, {name: "bases", folders: true}, {name: "components", folders: true},
	{name: "crds"}, {name: "configurations"},
	{name: "generators", folders: true, inline: true}, {name: "transformers", folders: true, inline: true},
	{name: "validators", folders: true, inline: true},
	{name: "patchesStrategicMerge", inline: true}, {name: "patchesJson6902", keys: []string{"path"}},
	{name: "patches", keys: []string{"path"}}, {name: "replacements", keys: []string{"path"}},
	{name: "configMapGenerator", keys: []string{"files", "envs", "env"}},
	{name: "secretGenerator", keys: []string{"files", "envs", "env"}},
}

var (
	remoteAddress = regexp.MustCompile(`(?i)^(git::|https?://|ssh://|file://|git://|github\.com[/:]|[a-z][a-z0-9-]*@)`)
	remoteFile    = regexp.MustCompile(`(?i)^https?:`)
	// The annotation that makes an object a function, in both spellings.
	functionKey = regexp.MustCompile(`^config\.(kubernetes|k8s)\.io/function$`)
)

// Checks the kustomization of a folder and those it names. The objects of a folder of plugins configure plugins.
func (s *scan) folder(folder string, plugins bool) error {
	folder = s.tree.real(folder)
	if s.seen[visit{folder, plugins}] {
		return nil
	}
	s.seen[visit{folder, plugins}] = true
	var file string
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		if _, is := s.tree.files[path.Join(folder, name)]; is {
			if file != "" {
				return faultf("kustomization", "`%s` has two kustomization files", folder).at(path.Join(folder, name), 0)
			}
			file = path.Join(folder, name)
		}
	}
	if file == "" {
		return faultf("kustomization", "`%s` has no kustomization.yaml", folder).at(path.Join(folder, "kustomization.yaml"), 0)
	}
	s.files = append(s.files, file)
	s.read = append(s.read, file)
	root, err := parseYAML(file, s.tree.files[file])
	if err != nil {
		return err
	}
	var k types.Kustomization
	if err := k.Unmarshal(s.tree.files[file]); err == nil {
		s.warnings = append(s.warnings, *k.CheckDeprecatedFields()...)
	}
	return eachField(root, func(key, value *yaml.Node) error {
		s.fields = append(s.fields, fieldPlace{key.Value, file, key.Line})
		return s.field(folder, file, key, value, plugins)
	})
}

func (s *scan) field(folder, file string, key, value *yaml.Node, plugins bool) error {
	name := strings.ToLower(key.Value)
	switch name {
	case "helmcharts", "helmchartinflationgenerator", "helmglobals":
		return faultf("outside", "`%s` runs the program `helm`", key.Value).at(file, key.Line).
			advise("Render the chart as a source of its own.")
	case "openapi":
		return eachField(value, func(key, value *yaml.Node) error {
			if key.Value != "path" {
				return nil
			}
			if err := s.file(folder, file, value); err != nil {
				return err
			}
			return s.schemaReferences(path.Join(folder, value.Value))
		})
	}
	for _, field := range pathFields {
		if strings.ToLower(field.name) != name {
			continue
		}
		isPlugin := name == "generators" || name == "transformers" || name == "validators"
		for _, item := range items(value) {
			var err error
			switch {
			case field.keys != nil:
				err = s.keyedPaths(folder, file, item, field.keys)
			case field.inline && s.isInline(folder, item.Value):
				if isPlugin {
					// The text begins on the line after its `|`.
					err = s.pluginObjects(file, item.Line+1, []byte(item.Value))
				}
			case field.folders:
				err = s.fileOrFolder(folder, file, item, isPlugin || plugins)
			default:
				err = s.file(folder, file, item)
			}
			if err == nil && name == "crds" {
				err = s.schemaReferences(path.Join(folder, item.Value))
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Reports whether a text is an object instead of a path.
func (s *scan) isInline(folder, text string) bool {
	if strings.Contains(text, "\n") {
		return true
	}
	_, is := s.tree.files[s.tree.real(path.Join(folder, text))]
	return !is && strings.HasPrefix(strings.TrimSpace(text), "{")
}

// Checks the paths under some keys of a table. Those of `files` may begin with a name and `=`.
func (s *scan) keyedPaths(folder, file string, table *yaml.Node, keys []string) error {
	return eachField(table, func(key, value *yaml.Node) error {
		for _, wanted := range keys {
			if !strings.EqualFold(key.Value, wanted) {
				continue
			}
			for _, item := range items(value) {
				named := *item
				if wanted == "files" {
					if _, after, found := strings.Cut(item.Value, "="); found {
						named.Value = after
					}
				}
				if err := s.file(folder, file, &named); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// Checks a reference to a file: Kustomize reads files of the folder and below.
func (s *scan) file(folder, file string, item *yaml.Node) error {
	name := item.Value
	if remoteFile.MatchString(name) {
		return remote(file, item)
	}
	if name == "" {
		return nil
	}
	joined := path.Join("/", folder, name)
	if path.IsAbs(name) {
		joined = path.Clean(name)
	}
	resolved := s.tree.real(strings.TrimPrefix(joined, "/"))
	if escapes(folder, name) {
		return leaves(file, item)
	}
	if _, is := s.tree.files[resolved]; !is {
		return faultf("kustomization", "`%s` does not exist", name).at(file, item.Line)
	}
	if _, is := inside(folder, resolved); !is {
		return faultf("outside", "`%s` is not in or below `%s`", name, shown(folder)).at(file, item.Line).
			advise("Move the file, or name its folder, with a kustomization.yaml of its own.")
	}
	s.read = append(s.read, resolved)
	return nil
}

// Checks a reference to a file or to a folder with a kustomization.
func (s *scan) fileOrFolder(folder, file string, item *yaml.Node, plugins bool) error {
	name := item.Value
	if remoteAddress.MatchString(name) {
		return remote(file, item)
	}
	if escapes(folder, name) {
		return leaves(file, item)
	}
	resolved := s.tree.real(path.Join(folder, name))
	if data, is := s.tree.files[resolved]; is {
		if err := s.file(folder, file, item); err != nil {
			return err
		}
		if plugins {
			return s.pluginObjects(resolved, 1, data)
		}
		return nil
	}
	if path.IsAbs(name) {
		return faultf("outside", "`%s` is an absolute path", name).at(file, item.Line).advise("Use a relative path.")
	}
	if len(s.tree.below(resolved)) == 0 {
		return faultf("kustomization", "`%s` does not exist", name).at(file, item.Line)
	}
	return s.folder(resolved, plugins)
}

// Refuses plugins that are not Kustomize's own.
func (s *scan) pluginObjects(file string, firstLine int, text []byte) error {
	for _, part := range documentParts(string(text)) {
		node, err := yaml.Parse(part.text)
		if err != nil {
			continue
		}
		line := firstLine + part.before
		var kind, version string
		function := 0
		_ = eachField(node.YNode(), func(key, value *yaml.Node) error {
			switch key.Value {
			case "kind":
				kind = value.Value
			case "apiVersion":
				version = value.Value
			case "metadata":
				function = max(function, lineOfFunction(value))
			}
			return nil
		})
		switch {
		case function > 0:
			return faultf("outside", "`%s` is a function, which runs a program or a container", kind).at(file, line+function-1).
				advise("Use fields of Kustomize, or commit what the function makes.")
		case kind == "HelmChartInflationGenerator":
			return faultf("outside", "`%s` runs the program `helm`", kind).at(file, line).
				advise("Render the chart as a source of its own.")
		case kind != "" && version != konfig.BuiltinPluginApiVersion:
			return faultf("outside", "`%s` is a plugin", kind).at(file, line).
				advise("Use fields of Kustomize, or commit what the plugin makes.")
		}
	}
	return nil
}

// Returns the line of the annotation that makes an object a function, or 0.
func lineOfFunction(metadata *yaml.Node) int {
	line := 0
	_ = eachField(metadata, func(key, annotations *yaml.Node) error {
		if key.Value == "annotations" {
			_ = eachField(annotations, func(key, _ *yaml.Node) error {
				if functionKey.MatchString(key.Value) {
					line = key.Line
				}
				return nil
			})
		}
		return nil
	})
	return line
}

// Refuses a schema with references to other files or addresses.
func (s *scan) schemaReferences(file string) error {
	node, err := parseYAML(file, s.tree.files[s.tree.real(file)])
	if err != nil {
		return err
	}
	var visit func(node *yaml.Node) error
	visit = func(node *yaml.Node) error {
		for i, child := range node.Content {
			if node.Kind == yaml.MappingNode && i%2 == 0 && child.Value == "$ref" {
				if reference := node.Content[i+1]; reference.Kind == yaml.ScalarNode && !strings.HasPrefix(reference.Value, "#") {
					return faultf("outside", "the schema refers to `%s`, outside of the schema", reference.Value).at(file, reference.Line).
						advise("Copy what it refers to into the schema.")
				}
			}
			if err := visit(child); err != nil {
				return err
			}
		}
		return nil
	}
	return visit(node)
}

func remote(file string, item *yaml.Node) *fault {
	return faultf("outside", "`%s` is a remote address", item.Value).at(file, item.Line).
		advise("Vendor it into the repository and name the folder.")
}

func leaves(file string, item *yaml.Node) *fault {
	return faultf("outside", "`%s` leads out of the tree", item.Value).at(file, item.Line).
		advise("Vendor it into the repository and name the folder.")
}

func shown(folder string) string {
	if folder == "" {
		return filesys.SelfDir
	}
	return folder
}

// Reports whether a relative path leads above the root of the tree.
func escapes(folder, name string) bool {
	joined := path.Join(folder, name)
	return !path.IsAbs(name) && (joined == ".." || strings.HasPrefix(joined, "../"))
}

// Parses one document.
func parseYAML(file string, text []byte) (*yaml.Node, error) {
	node, err := yaml.Parse(string(text))
	if err != nil {
		return nil, faultf("kustomization", "%v", err).at(file, lineOfYAMLError(err))
	}
	return node.YNode(), nil
}

// Calls a function for each key of a table.
func eachField(table *yaml.Node, visit func(key, value *yaml.Node) error) error {
	table = followed(table)
	if table == nil || table.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(table.Content); i += 2 {
		if err := visit(table.Content[i], followed(table.Content[i+1])); err != nil {
			return err
		}
	}
	return nil
}

// Returns the items of a list, or the value itself where it is no list.
func items(value *yaml.Node) []*yaml.Node {
	value = followed(value)
	if value == nil || value.Kind != yaml.SequenceNode {
		return []*yaml.Node{value}
	}
	var all []*yaml.Node
	for _, item := range value.Content {
		all = append(all, followed(item))
	}
	return all
}

// Returns the node that an alias stands for.
func followed(node *yaml.Node) *yaml.Node {
	for node != nil && node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	return node
}

// One document of a file, and the number of lines before it.
type documentPart struct {
	before int
	text   string
}

// Splits the documents of a file.
func documentParts(text string) []documentPart {
	parts := []documentPart{{}}
	before := 0
	for line := range strings.Lines(text) {
		before++
		if strings.HasPrefix(line, "---") {
			parts = append(parts, documentPart{before: before})
			continue
		}
		parts[len(parts)-1].text += line
	}
	return parts
}
