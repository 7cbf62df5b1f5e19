package main

import (
	"errors"
	"path"
	"regexp"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	release "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
)

// One request to render a chart.
type helmRender struct {
	*helmRequest
	chart        *chartFolder
	capabilities *common.Capabilities
}

// The result of one execution of a chart's templates.
type rendered struct {
	capabilities *common.Capabilities
	chart        *chart.Chart
	crds         []document
	documents    []document
	hooks        []hook
	dropped      []document
	values       map[string]any
	err          error
	draws        draws
}

// Renders a chart as `helm template` does, or refuses it.
func renderHelm(t *tree, r *helmRequest, l limits) (*helmAnswer, error) {
	folder, err := cleanFolder(r.Path)
	if err != nil {
		return nil, err
	}
	if err := chartutil.ValidateReleaseName(r.Release); err != nil {
		return nil, faultf("request", "the release name `%s` is invalid: %v", r.Release, err)
	}
	if r.Namespace == "" {
		return nil, faultf("request", "`namespace` is required")
	}
	if r.Lookup != "" && r.Lookup != "refuse" && r.Lookup != "empty" {
		return nil, faultf("request", "`lookup` is `%s`, but may be `refuse` or `empty`", r.Lookup)
	}
	capabilities, err := makeCapabilities(r)
	if err != nil {
		return nil, err
	}
	c, err := openChart(t, folder)
	if err != nil {
		return nil, err
	}
	h := &helmRender{helmRequest: r, chart: c, capabilities: capabilities}
	warnings := captureLog()
	first := h.execute(draws{failing: -1})
	warned := warnings.stop()
	if first.draws.count > 0 {
		if err := h.refuseDraws(first); err != nil {
			return nil, err
		}
	}
	if first.err != nil {
		return nil, first.err
	}
	if first.draws.count == 0 && !r.Once {
		if again := h.execute(draws{failing: -1}); !same(first, again) {
			return nil, h.unstable(first, again)
		}
	}
	return h.answer(first, warned, l)
}

func makeCapabilities(r *helmRequest) (*common.Capabilities, error) {
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.HelmVersion.Version = helmVersion
	version, err := common.ParseKubeVersion(r.KubeVersion)
	if err != nil {
		return nil, faultf("request", "`kubeVersion` is `%s`, which is not a version: %v", r.KubeVersion, err)
	}
	capabilities.KubeVersion = *version
	known := append(common.VersionSet(nil), capabilities.APIVersions...)
	if r.OnlyAPIVersions {
		known = nil
	}
	capabilities.APIVersions = append(known, r.APIVersions...)
	return capabilities, nil
}

// Loads the chart and executes its templates once.
func (h *helmRender) execute(d draws) *rendered {
	d.emptyLookup = h.Lookup == "empty"
	// Each render has its own capabilities, so that an address in the output is another one.
	r := &rendered{draws: d, capabilities: h.capabilities.Copy()}
	r.err = h.executeInto(r)
	return r
}

func (h *helmRender) executeInto(r *rendered) error {
	values, err := mergeValues(h.Values)
	if err != nil {
		return err
	}
	loaded, err := h.chart.load()
	if err != nil {
		return err
	}
	r.chart = loaded
	root := h.chart.inTree("Chart.yaml")
	if err := chartutil.ProcessDependencies(loaded, values); err != nil {
		return h.valuesFault(err)
	}
	if err := checkSchemas(h.chart, loaded); err != nil {
		return err
	}
	options := common.ReleaseOptions{
		Name: h.Release, Namespace: h.Namespace, Revision: 1, IsInstall: !h.Upgrade, IsUpgrade: h.Upgrade,
	}
	top, err := util.ToRenderValues(loaded, values, options, r.capabilities)
	if err != nil {
		if strings.Contains(err.Error(), "specifications of the schema") {
			return schemaFault(h.chart, loaded.Name(), h.Values, err)
		}
		return h.valuesFault(err)
	}
	if wanted := loaded.Metadata.KubeVersion; wanted != "" &&
		!chartutil.IsCompatibleRange(wanted, h.capabilities.KubeVersion.String()) {
		return faultf("chart", "the chart requires Kubernetes `%s`, and this is %s", wanted, h.capabilities.KubeVersion.Version).
			at(root, h.chart.lineOf("Chart.yaml", "kubeVersion:"))
	}
	if err := h.refuseRandomFiles(loaded); err != nil {
		return err
	}
	// Templates may change the values, so those of the answer are a copy.
	if r.values, err = copyValues(top["Values"]); err != nil {
		return faultf("values", "%v", err).at(h.chart.inTree("values.yaml"), 0)
	}
	files, err := engine.Engine{CustomTemplateFuncs: r.draws.functions()}.Render(loaded, top)
	if err != nil {
		return h.templateFault(err, r)
	}
	for name := range files {
		if strings.HasSuffix(name, "NOTES.txt") {
			delete(files, name)
		}
	}
	hooks, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return h.yamlFault(err)
	}
	h.collect(r, files, hooks, manifests)
	return nil
}

var notATable = regexp.MustCompile(`type mismatch on ([^:\s]+)`)

// Turns a failed merge of values into a fault at the document that has the value.
func (h *helmRender) valuesFault(err error) error {
	m := notATable.FindStringSubmatch(err.Error())
	if m == nil {
		return faultf("values", "%v", err).at(h.chart.inTree("values.yaml"), 0)
	}
	f := faultf("values", "`%s` holds the values of a subchart, and so has to be a table", m[1])
	if name, line := findValue(h.Values, m[1:]); line > 0 {
		return f.at(name, line)
	}
	return f.at(h.chart.inTree("values.yaml"), h.chart.lineOf("values.yaml", m[1]+":"))
}

// Takes over what Helm sorted.
func (h *helmRender) collect(r *rendered, files map[string]string, hooks []*release.Hook, manifests []releaseutil.Manifest) {
	if h.CRDs {
		for _, crd := range r.chart.CRDObjects() {
			r.crds = append(r.crds, document{crd.Filename, string(crd.File.Data)})
		}
	}
	kept := map[document]bool{}
	for _, m := range manifests {
		kept[document{m.Name, m.Content}] = true
		r.documents = append(r.documents, document{m.Name, m.Content})
	}
	for _, from := range hooks {
		to := hook{document: document{from.Path, from.Manifest}, Kind: from.Kind, Name: from.Name, Weight: from.Weight,
			Events: []string{}, DeletePolicies: []string{}, LogPolicies: []string{}}
		kept[to.document] = true
		isTest := false
		for _, event := range from.Events {
			isTest = isTest || event == release.HookTest
			to.Events = append(to.Events, event.String())
		}
		for _, policy := range from.DeletePolicies {
			to.DeletePolicies = append(to.DeletePolicies, policy.String())
		}
		for _, policy := range from.OutputLogPolicies {
			to.LogPolicies = append(to.LogPolicies, policy.String())
		}
		if h.Hooks && (h.Tests || !isTest) {
			r.hooks = append(r.hooks, to)
		}
	}
	for _, name := range sortedKeys(files) {
		parts := releaseutil.SplitManifests(files[name])
		keys := sortedKeys(parts)
		sort.Sort(releaseutil.BySplitManifestsOrder(keys))
		for _, key := range keys {
			if d := (document{name, parts[key]}); !kept[d] && !strings.HasPrefix(path.Base(name), "_") {
				r.dropped = append(r.dropped, d)
			}
		}
	}
}

// Refuses a chart whose renders differ for a reason that is none of the known functions: most often, a template prints an
// address in memory, as `{{ . }}` does.
func (h *helmRender) unstable(a, b *rendered) error {
	file, line := firstDifference(a, b)
	return faultf("impure", "two renders differ, first in line %d of the output of the template", line).
		at(h.chart.treePath(file), 0).
		advise("Print single values instead of a whole object such as `.`, which has addresses in memory.")
}

// Returns the template of the first document that differs, and the line of the document.
func firstDifference(a, b *rendered) (string, int) {
	all := func(r *rendered) []document {
		list := slices.Concat(r.crds, r.documents)
		for _, hook := range r.hooks {
			list = append(list, hook.document)
		}
		return list
	}
	others := all(b)
	for i, d := range all(a) {
		if i >= len(others) || others[i].File != d.File {
			return d.File, 1
		}
		lines := strings.Split(others[i].Text, "\n")
		for j, line := range strings.Split(d.Text, "\n") {
			if j >= len(lines) || lines[j] != line {
				return d.File, j + 1
			}
		}
	}
	return "", 0
}

func (h *helmRender) answer(r *rendered, warnings []string, l limits) (*helmAnswer, error) {
	a := &helmAnswer{
		Chart:     chartInfo{r.chart.Metadata.Name, r.chart.Metadata.Version, r.chart.Metadata.AppVersion},
		CRDs:      append([]document{}, r.crds...),
		Documents: append([]document{}, r.documents...),
		Hooks:     append([]hook{}, r.hooks...),
		Dropped:   append([]document{}, r.dropped...),
		Values:    r.values,
		Warnings:  warnings,
	}
	if h.Origins {
		a.Origins = h.origins(r.chart, r.values)
	}
	count := counter{limits: l}
	check := func(d document) error {
		if !utf8.ValidString(d.Text) {
			return faultf("output", "the output of `%s` is not UTF-8", d.File).at(h.chart.treePath(d.File), 0)
		}
		return count.add(d.Text)
	}
	for _, d := range slices.Concat(a.CRDs, a.Documents, a.Dropped) {
		if err := check(d); err != nil {
			return nil, err
		}
	}
	for _, d := range a.Hooks {
		if err := check(d.document); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// Turns invalid YAML in the output into a fault. Its line is one of the output.
func (h *helmRender) yamlFault(err error) error {
	message := err.Error()
	if rest, is := strings.CutPrefix(message, "YAML parse error on "); is {
		if file, reason, found := strings.Cut(rest, ": "); found {
			return faultf("chart", "the output is not YAML: %s", reason).at(h.chart.treePath(file), 0).
				advise("A line in the message is one of the document that the template gives.")
		}
	}
	return faultf("chart", "%v", err).at(path.Join(h.chart.path, "templates"), 0)
}

func copyValues(values any) (map[string]any, error) {
	table, is := values.(common.Values)
	if !is {
		plain, is := values.(map[string]any)
		if !is {
			return nil, errors.New("the values are not a table")
		}
		table = plain
	}
	text, err := table.YAML()
	if err != nil {
		return nil, err
	}
	return common.ReadValues([]byte(text))
}
