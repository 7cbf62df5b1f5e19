package main

import (
	"slices"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// A layer of values: a document of the request, or the defaults of a chart, which hold for a section of the values.
type layer struct {
	name    string
	section []string
	parts   []layerPart
}

type layerPart struct {
	before int
	node   *yaml.Node
}

func newLayer(name, text string, section []string) layer {
	l := layer{name: name, section: section}
	for _, part := range documentParts(text) {
		if node, err := yaml.Parse(part.text); err == nil {
			l.parts = append(l.parts, layerPart{part.before, node.YNode()})
		}
	}
	return l
}

// Returns the line of a value in a layer, or 0.
func (l layer) find(keys []string) int {
	if len(keys) <= len(l.section) || !slices.Equal(keys[:len(l.section)], l.section) {
		return 0
	}
	for _, part := range slices.Backward(l.parts) {
		if line := lineOfKey(part.node, keys[len(l.section):]); line > 0 {
			return part.before + line
		}
	}
	return 0
}

// Returns the layers of a release, those that win first: the documents of the request, and the defaults of the charts.
func (h *helmRender) layers(loaded *chart.Chart) []layer {
	var layers []layer
	for _, d := range slices.Backward(h.Values) {
		layers = append(layers, newLayer(d.Name, d.Text, nil))
	}
	var defaults func(c *chart.Chart, section []string)
	defaults = func(c *chart.Chart, section []string) {
		for _, f := range c.Raw {
			if f.Name == "values.yaml" {
				layers = append(layers, newLayer(h.chart.treePath(c.ChartFullPath()+"/"+f.Name), string(f.Data), section))
			}
		}
		for _, sub := range c.Dependencies() {
			defaults(sub, append(slices.Clip(section), sub.Name()))
		}
	}
	defaults(loaded, nil)
	return layers
}

// Returns the place that sets a value. The globals of a subchart are those of its parent.
func originOf(layers []layer, keys []string) (origin, bool) {
	for _, tail := range [][]string{keys, keys[max(slices.Index(keys, "global"), 0):]} {
		for _, l := range layers {
			if line := l.find(tail); line > 0 {
				return origin{keys, l.name, line}, true
			}
		}
	}
	return origin{}, false
}

// Lists where each merged value comes from: the last document of the request that sets it, or the defaults of the
// outermost chart that has one. A value that a chart imports from a subchart is not listed.
func (h *helmRender) origins(loaded *chart.Chart, values map[string]any) []origin {
	layers := h.layers(loaded)
	list := []origin{}
	var visit func(value any, keys []string)
	visit = func(value any, keys []string) {
		if table, is := value.(map[string]any); is && len(table) > 0 {
			for _, key := range sortedKeys(table) {
				visit(table[key], append(slices.Clip(keys), key))
			}
			return
		}
		if o, found := originOf(layers, keys); found {
			list = append(list, o)
		}
	}
	visit(values, nil)
	return list
}
