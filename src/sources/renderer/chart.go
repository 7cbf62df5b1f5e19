package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"sort"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/ignore"
	"sigs.k8s.io/yaml"
)

// A chart's files in a tree, as Helm reads them from a folder.
type chartFolder struct {
	tree  *tree
	path  string
	files []*archive.BufferedFile
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// Reads the files of a chart, without those that `.helmignore` excludes.
func openChart(t *tree, folder string) (*chartFolder, error) {
	rules := ignore.Empty()
	if text, is := t.files[path.Join(folder, ignore.HelmIgnore)]; is {
		parsed, err := ignore.Parse(bytes.NewReader(text))
		if err != nil {
			return nil, faultf("chart", "invalid .helmignore: %v", err).at(path.Join(folder, ignore.HelmIgnore), 0)
		}
		rules = parsed
	}
	rules.AddDefaults()
	c := &chartFolder{tree: t, path: folder}
	if _, is := t.files[path.Join(folder, "Chart.yaml")]; !is {
		return nil, faultf("chart", "`%s` has no Chart.yaml", folder).at(path.Join(folder, "Chart.yaml"), 0)
	}
	ignored := map[string]bool{}
	var ignoresFolder func(name string) bool
	ignoresFolder = func(name string) bool {
		if name == "." {
			return false
		}
		known, is := ignored[name]
		if !is {
			known = ignoresFolder(path.Dir(name)) || rules.Ignore(name, entry{name, true})
			ignored[name] = known
		}
		return known
	}
	for _, name := range t.below(folder) {
		if ignoresFolder(path.Dir(name)) || rules.Ignore(name, entry{name, false}) {
			continue
		}
		data := t.files[path.Join(folder, name)]
		if int64(len(data)) > archive.MaxDecompressedFileSize {
			return nil, faultf("limit", "`%s` is larger than Helm's limit of %d bytes", name, archive.MaxDecompressedFileSize).
				at(path.Join(folder, name), 0)
		}
		c.files = append(c.files, &archive.BufferedFile{Name: name, Data: bytes.TrimPrefix(data, byteOrderMark)})
	}
	return c, nil
}

// A file or folder of a tree, as `.helmignore` sees it.
type entry struct {
	name   string
	folder bool
}

func (e entry) Name() string       { return path.Base(e.name) }
func (e entry) Size() int64        { return 0 }
func (e entry) ModTime() time.Time { return time.Time{} }
func (e entry) IsDir() bool        { return e.folder }
func (e entry) Sys() any           { return nil }
func (e entry) Mode() fs.FileMode {
	if e.folder {
		return fs.ModeDir
	}
	return 0
}

// Loads the chart. A render changes its chart, so each render loads one.
func (c *chartFolder) load() (*chart.Chart, error) {
	loaded, err := loader.LoadFiles(c.files)
	if err != nil {
		return nil, c.loadFault(err)
	}
	switch loaded.Metadata.APIVersion {
	case chart.APIVersionV1, chart.APIVersionV2:
	default:
		return nil, faultf("chart", "unsupported chart version `%s`", loaded.Metadata.APIVersion).at(c.inTree("Chart.yaml"), 0)
	}
	if kind := loaded.Metadata.Type; kind != "" && kind != "application" {
		return nil, faultf("chart", "%s charts are not installable", kind).
			at(c.inTree("Chart.yaml"), c.lineOf("Chart.yaml", "type:")).
			advise("Name a chart that depends on this one.")
	}
	if err := c.checkDependencies(loaded); err != nil {
		return nil, err
	}
	return loaded, c.orderSubcharts(loaded)
}

func (c *chartFolder) inTree(name string) string { return path.Join(c.path, name) }

// Returns the first line of a file of the chart that begins with a text, or 0.
func (c *chartFolder) lineOf(name, text string) int {
	for i, line := range strings.Split(string(c.tree.files[c.inTree(name)]), "\n") {
		if strings.HasPrefix(strings.TrimLeft(line, " -"), text) {
			return i + 1
		}
	}
	return 0
}

var (
	loadPlace = regexp.MustCompile(`cannot load (\S+?): `)
	inChart   = regexp.MustCompile(`error unpacking subchart (\S+) in `)
)

// Finds the file that Helm could not load.
func (c *chartFolder) loadFault(err error) error {
	f := faultf("chart", "%v", err)
	folder := ""
	for _, m := range inChart.FindAllStringSubmatch(err.Error(), -1) {
		folder = path.Join(folder, "charts", m[1])
	}
	f.File = c.inTree(path.Join(folder, "Chart.yaml"))
	if m := loadPlace.FindStringSubmatch(err.Error()); m != nil {
		f.File = c.inTree(path.Join(folder, m[1]))
		f.Line = lineOfYAMLError(err)
		if path.Base(f.File) == "values.yaml" {
			f.Line = invalidLine(string(c.tree.files[f.File]))
		}
	}
	return f
}

// Checks, as Helm does, that charts/ has each declared dependency.
func (c *chartFolder) checkDependencies(loaded *chart.Chart) error {
	for _, required := range loaded.Metadata.Dependencies {
		found := false
		for _, dependency := range loaded.Dependencies() {
			found = found || dependency.Name() == required.Name
		}
		if !found {
			return faultf("chart", "the dependency `%s` is missing in charts/", required.Name).
				at(c.inTree("Chart.yaml"), c.lineOf("Chart.yaml", "name: "+required.Name)).
				advise("Vendor the dependency: `helm dependency build` fills charts/.")
		}
	}
	return nil
}

// Orders subcharts: Helm loads them in a random order. Refuses those where the order decides what Helm renders.
func (c *chartFolder) orderSubcharts(parent *chart.Chart) error {
	subcharts := append([]*chart.Chart(nil), parent.Dependencies()...)
	sort.SliceStable(subcharts, func(i, j int) bool {
		a, b := subcharts[i].Metadata, subcharts[j].Metadata
		if a.Name != b.Name {
			return a.Name < b.Name
		}
		return a.Version < b.Version
	})
	undeclared := map[string]bool{}
	for _, sub := range subcharts {
		declared := false
		for _, required := range parent.Metadata.Dependencies {
			declared = declared || fits(required, sub)
		}
		if !declared && undeclared[sub.Name()] {
			return c.ambiguous(parent, sub.Name(), "are not told apart by `dependencies`")
		}
		if !declared {
			undeclared[sub.Name()] = true
		}
		if err := c.orderSubcharts(sub); err != nil {
			return err
		}
	}
	for _, required := range parent.Metadata.Dependencies {
		found := 0
		for _, sub := range subcharts {
			if fits(required, sub) {
				found++
			}
		}
		if found > 1 {
			return c.ambiguous(parent, required.Name, fmt.Sprintf("satisfy `%s`", required.Version))
		}
	}
	parent.SetDependencies(subcharts...)
	return nil
}

func fits(required *chart.Dependency, sub *chart.Chart) bool {
	return required != nil && required.Name == sub.Name() && chartutil.IsCompatibleRange(required.Version, sub.Metadata.Version)
}

func (c *chartFolder) ambiguous(parent *chart.Chart, name, reason string) error {
	below := strings.TrimPrefix(parent.ChartFullPath(), parent.Root().Name())
	return faultf("impure", "two charts `%s` in charts/ %s: Helm picks a random one", name, reason).
		at(c.inTree(path.Join(strings.TrimPrefix(below, "/"), "Chart.yaml")), c.lineOf("Chart.yaml", "name: "+name)).
		advise("Remove one of the charts, or give the dependency an exact version.")
}

// Returns the path in the tree of a file as Helm names it: the root chart's name, then `charts/` and a name or alias for
// each subchart. A file of a packed subchart keeps Helm's name.
func (c *chartFolder) treePath(name string) string {
	_, rest, _ := strings.Cut(name, "/")
	folder := c.path
	for {
		below, is := strings.CutPrefix(rest, "charts/")
		if !is {
			break
		}
		sub, after, _ := strings.Cut(below, "/")
		found := c.subchartFolder(folder, sub)
		if found == "" {
			return name
		}
		folder, rest = found, after
	}
	if inTree := path.Join(folder, rest); c.tree.files[inTree] != nil {
		return inTree
	}
	return name
}

// Returns the folder of a subchart with a name or alias, or nothing.
func (c *chartFolder) subchartFolder(parent, name string) string {
	metadata := func(folder string) *chart.Metadata {
		var m chart.Metadata
		if yaml.Unmarshal(c.tree.files[path.Join(folder, "Chart.yaml")], &m) != nil {
			return &chart.Metadata{}
		}
		return &m
	}
	for _, d := range metadata(parent).Dependencies {
		if d != nil && d.Alias == name {
			name = d.Name
			break
		}
	}
	charts := path.Join(parent, "charts")
	for _, below := range c.tree.below(charts) {
		folder, file, _ := strings.Cut(below, "/")
		if file == "Chart.yaml" && metadata(path.Join(charts, folder)).Name == name {
			return path.Join(charts, folder)
		}
	}
	return ""
}
