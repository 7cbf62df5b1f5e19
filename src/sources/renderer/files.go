package main

import (
	"bytes"
	"fmt"
	"path"
	"strings"
	"text/template/parse"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/engine"
)

// Refuses `.Files.AsConfig` and `.Files.AsSecrets` over two different files of one base name: Helm puts a random one of
// them into the output. A call is judged by its text: by its `Glob` where that names a pattern, else by all files.
func (h *helmRender) refuseRandomFiles(c *chart.Chart) error {
	if len(equalBaseNames(c, "**")) > 0 {
		for _, d := range h.Values {
			if err := h.refuseRandomCalls(c, d.Name, []byte(d.Text)); err != nil {
				return err
			}
		}
		// A template may execute the text of any file or value.
		for _, f := range c.Raw {
			file := h.chart.treePath(path.Join(c.ChartFullPath(), f.Name))
			if strings.HasPrefix(f.Name, "charts/") {
				continue
			}
			if err := h.refuseRandomCalls(c, file, f.Data); err != nil {
				return err
			}
		}
	}
	for _, sub := range c.Dependencies() {
		if err := h.refuseRandomFiles(sub); err != nil {
			return err
		}
	}
	return nil
}

func (h *helmRender) refuseRandomCalls(c *chart.Chart, file string, text []byte) error {
	if !bytes.Contains(text, []byte("AsConfig")) && !bytes.Contains(text, []byte("AsSecrets")) {
		return nil
	}
	var found error
	for _, t := range parseTemplate(file, string(text)) {
		inspect(t.Root, func(node parse.Node) {
			pattern, is := filesCall(node)
			if !is || found != nil {
				return
			}
			if equal := equalBaseNames(c, pattern); len(equal) > 0 {
				found = faultf("impure", "`%s` and `%s` have the same name: Helm picks a random one", equal[0], equal[1]).
					at(file, lineAt(text, int(node.Position()))).
					advise("Rename one of the files, or select them with `.Files.Glob`.")
			}
		})
	}
	return found
}

// Returns the pattern of files that a call of AsConfig or AsSecrets reads.
func filesCall(node parse.Node) (string, bool) {
	isCall := func(steps []string) bool {
		last := len(steps) - 1
		return last >= 0 && (steps[last] == "AsConfig" || steps[last] == "AsSecrets")
	}
	switch n := node.(type) {
	case *parse.FieldNode:
		return "**", isCall(n.Ident)
	case *parse.VariableNode:
		return "**", isCall(n.Ident)
	case *parse.ChainNode:
		pattern := "**"
		if pipe, is := n.Node.(*parse.PipeNode); is && len(pipe.Cmds) == 1 && len(pipe.Cmds[0].Args) == 2 {
			command := pipe.Cmds[0]
			text, isText := command.Args[1].(*parse.StringNode)
			if isText && strings.HasSuffix(command.Args[0].String(), ".Files.Glob") {
				pattern = text.Text
			}
		}
		return pattern, isCall(n.Field)
	}
	return "", false
}

// Returns two files of a chart that match a pattern and have one base name, but not one content. Helm itself evaluates
// the pattern.
func equalBaseNames(c *chart.Chart, pattern string) []string {
	text := fmt.Appendf(nil, "{{ range $name, $_ := .Files.Glob %q }}{{ $name }}\n{{ end }}", pattern)
	probe := &chart.Chart{
		Metadata:  &chart.Metadata{Name: "probe"},
		Files:     c.Files,
		Templates: []*common.File{{Name: "templates/probe", Data: text}},
	}
	output, err := engine.Render(probe, common.Values{})
	if err != nil {
		return nil
	}
	contents := map[string][]byte{}
	for _, f := range c.Files {
		contents[f.Name] = f.Data
	}
	first := map[string]string{}
	for name := range strings.Lines(output["probe/templates/probe"]) {
		name = strings.TrimSuffix(name, "\n")
		other, is := first[path.Base(name)]
		if is && !bytes.Equal(contents[name], contents[other]) {
			return []string{other, name}
		}
		if !is {
			first[path.Base(name)] = name
		}
	}
	return nil
}
