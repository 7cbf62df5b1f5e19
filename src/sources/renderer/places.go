package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"text/template/parse"

	chart "helm.sh/helm/v4/pkg/chart/v2"
)

var (
	// Helm's error of `fail` and `required`, of the parser, and of a call.
	failedAt  = regexp.MustCompile(`^(?:execution error|parse error) (?:at|in) \(([^()]*?):(\d+)(?::(\d+))?\): (?s:(.*))$`)
	calledAt  = regexp.MustCompile(`(?m)^(\S+/templates/\S+?|\S+\.\w+):(\d+)(?::(\d+))?$`)
	inlined   = regexp.MustCompile(`template: (\S+?):(\d+):(\d+): executing`)
	callError = regexp.MustCompile(`error calling (\w+): (?s:(.*))$`)
	mapKey    = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)+$`)
)

// Turns an error of Helm's engine into a fault with its place: the innermost call that has one.
func (h *helmRender) templateFault(err error, r *rendered) error {
	text := err.Error()
	f := faultf("chart", "%s", text)
	var places []place
	if m := failedAt.FindStringSubmatch(text); m != nil {
		places = append(places, newPlace(m[1], m[2], m[3]))
		f.Message = m[4]
	} else {
		for _, m := range calledAt.FindAllStringSubmatch(text, -1) {
			places = append(places, newPlace(m[1], m[2], m[3]))
		}
		for _, m := range inlined.FindAllStringSubmatch(text, -1) {
			// The text that `tpl` executes has no file.
			if m[1] != "gotpl" {
				places = append(places, newPlace(m[1], m[2], m[3]))
			}
		}
		lines := strings.Split(strings.TrimSpace(text), "\n")
		f.Message = strings.TrimSpace(lines[len(lines)-1])
		if m := callError.FindStringSubmatch(f.Message); m != nil && r.draws.refused == nil {
			f.Message = fmt.Sprintf("`%s` fails: %s", m[1], m[2])
		}
	}
	places = slices.Compact(places)
	if refused := r.draws.refused; refused != nil {
		f.Kind = "impure"
		f.Message = refused.Error()
		f.Advice = refused.advice
		if f.Advice == "" {
			f.Advice = avoiding(h.valuesAt(r.chart, r.values, places))
		}
	} else {
		f.Advice = h.readValues(r.chart, h.valuesAt(r.chart, r.values, places))
	}
	if len(places) == 0 {
		return f.at(h.chart.inTree("templates"), 0)
	}
	for i := range places {
		places[i].File = h.chart.treePath(places[i].File)
	}
	last := places[len(places)-1]
	f.File, f.Line, f.Column = last.File, last.Line, last.Column
	if len(places) > 1 {
		f.Trace = places
	}
	return f
}

func newPlace(file, line, column string) place {
	p := place{File: file}
	p.Line = atoi(line)
	p.Column = atoi(column)
	return p
}

// Returns the values that the action at a place reads, then those that the conditions around it read, from the innermost
// call to the outermost one. There are at most four.
func (h *helmRender) valuesAt(loaded *chart.Chart, values map[string]any, places []place) []string {
	if len(places) == 0 {
		return nil
	}
	prefix := chartValues(places[0].File)
	var names []string
	for _, p := range slices.Backward(places) {
		text, found := templateText(loaded, p.File)
		if !found {
			continue
		}
		for _, action := range actionsAt(p.File, text, p) {
			for _, name := range valuesIn(action, values) {
				if !strings.HasPrefix(name, "global.") && prefix != "" {
					name = prefix + name
				}
				if !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
	}
	return names[:min(len(names), 4)]
}

// Advises to set values that may avoid a draw.
func avoiding(names []string) string {
	switch len(names) {
	case 0:
		return "Give the chart the value or the name of the Secret that it would make up."
	case 1:
		return fmt.Sprintf("Set the value `%s`.", names[0])
	}
	return fmt.Sprintf("Set one of the values `%s`.", strings.Join(names, "`, `"))
}

// Tells which values a template that fails reads, and where they are set.
func (h *helmRender) readValues(loaded *chart.Chart, names []string) string {
	if len(names) == 0 {
		return ""
	}
	layers := h.layers(loaded)
	for i, name := range names {
		if o, found := originOf(layers, strings.Split(name, ".")); found {
			names[i] = fmt.Sprintf("`%s` (%s:%d)", name, o.File, o.Line)
		} else {
			names[i] = fmt.Sprintf("`%s` (not set)", name)
		}
	}
	return "The template reads the values " + strings.Join(names, ", ") + "."
}

// Returns the section of values of a template's chart, with a dot, or nothing for the root chart.
func chartValues(file string) string {
	steps := strings.Split(file, "/")
	section := ""
	for i := 1; i+1 < len(steps) && steps[i] == "charts"; i += 2 {
		section += steps[i+1] + "."
	}
	return section
}

// Returns the text of a template that Helm names.
func templateText(loaded *chart.Chart, file string) (string, bool) {
	current := loaded
	rest := strings.TrimPrefix(file, loaded.Name()+"/")
	for {
		below, is := strings.CutPrefix(rest, "charts/")
		if !is {
			break
		}
		name, after, _ := strings.Cut(below, "/")
		var next *chart.Chart
		for _, sub := range current.Dependencies() {
			if sub.Name() == name {
				next = sub
			}
		}
		if next == nil {
			return "", false
		}
		current, rest = next, after
	}
	for _, t := range current.Templates {
		if t.Name == rest {
			return string(t.Data), true
		}
	}
	return "", false
}

// Parses a template. The trees are its own and those of its `define`s.
func parseTemplate(file, text string) []*parse.Tree {
	set := map[string]*parse.Tree{}
	t := parse.New(file)
	t.Mode = parse.SkipFuncCheck
	if _, err := t.Parse(text, "", "", set); err != nil {
		return nil
	}
	var trees []*parse.Tree
	for _, name := range sortedKeys(set) {
		if set[name].Root != nil {
			trees = append(trees, set[name])
		}
	}
	return trees
}

// Returns the pipelines around a place, the innermost first: that of its action, and those of the `if`s and `with`s around.
func actionsAt(file, text string, p place) []parse.Node {
	start := 0
	for range p.Line - 1 {
		next := strings.IndexByte(text[start:], '\n')
		if next < 0 {
			return nil
		}
		start += next + 1
	}
	offset := parse.Pos(start + p.Column)
	var best []parse.Node
	last := parse.Pos(-1)
	for _, t := range parseTemplate(file, text) {
		if chain := chainAt(t.Root, offset); len(chain) > 0 && chain[0].Position() > last {
			best, last = chain, chain[0].Position()
		}
	}
	return best
}

// Returns the pipelines on the way to the last node that begins at or before an offset, the innermost first.
func chainAt(list *parse.ListNode, offset parse.Pos) []parse.Node {
	if list == nil {
		return nil
	}
	var last parse.Node
	for _, node := range list.Nodes {
		if node.Position() <= offset {
			last = node
		}
	}
	var branch *parse.BranchNode
	switch node := last.(type) {
	case *parse.ActionNode:
		return []parse.Node{node.Pipe}
	case *parse.TemplateNode:
		return []parse.Node{node}
	case *parse.IfNode:
		branch = &node.BranchNode
	case *parse.WithNode:
		branch = &node.BranchNode
	case *parse.RangeNode:
		branch = &node.BranchNode
	default:
		return nil
	}
	for _, inner := range []*parse.ListNode{branch.ElseList, branch.List} {
		if inner != nil && len(inner.Nodes) > 0 && inner.Nodes[0].Position() <= offset {
			if chain := chainAt(inner, offset); chain != nil {
				return append(chain, branch.Pipe)
			}
		}
	}
	return []parse.Node{branch.Pipe}
}

// Returns the values that a pipeline names: `.Values.a.b`, and texts that are the path of a value, as helpers take them.
func valuesIn(node parse.Node, values map[string]any) []string {
	var names []string
	inspect(node, func(n parse.Node) {
		var steps []string
		switch n := n.(type) {
		case *parse.FieldNode:
			steps = n.Ident
		case *parse.VariableNode:
			steps = n.Ident
		case *parse.ChainNode:
			steps = n.Field
		case *parse.StringNode:
			if mapKey.MatchString(n.Text) && hasValue(values, n.Text) {
				names = append(names, n.Text)
			}
		}
		if i := slices.Index(steps, "Values"); i >= 0 && i+1 < len(steps) {
			names = append(names, strings.Join(steps[i+1:], "."))
		}
	})
	return names
}

// Reports whether a path leads to a value.
func hasValue(values map[string]any, name string) bool {
	var current any = values
	for step := range strings.SplitSeq(name, ".") {
		table, is := current.(map[string]any)
		if !is {
			return false
		}
		if current, is = table[step]; !is {
			return false
		}
	}
	return true
}

// Calls a function for a node and the nodes in it.
func inspect(node parse.Node, visit func(parse.Node)) {
	if node == nil {
		return
	}
	visit(node)
	switch n := node.(type) {
	case *parse.ListNode:
		if n != nil {
			for _, inner := range n.Nodes {
				inspect(inner, visit)
			}
		}
	case *parse.ActionNode:
		inspect(n.Pipe, visit)
	case *parse.TemplateNode:
		if n.Pipe != nil {
			inspect(n.Pipe, visit)
		}
	case *parse.PipeNode:
		for _, command := range n.Cmds {
			inspect(command, visit)
		}
	case *parse.CommandNode:
		for _, argument := range n.Args {
			inspect(argument, visit)
		}
	case *parse.ChainNode:
		inspect(n.Node, visit)
	case *parse.IfNode:
		inspectBranch(&n.BranchNode, visit)
	case *parse.WithNode:
		inspectBranch(&n.BranchNode, visit)
	case *parse.RangeNode:
		inspectBranch(&n.BranchNode, visit)
	}
}

func inspectBranch(branch *parse.BranchNode, visit func(parse.Node)) {
	inspect(branch.Pipe, visit)
	for _, list := range []*parse.ListNode{branch.List, branch.ElseList} {
		if list != nil {
			inspect(list, visit)
		}
	}
}
