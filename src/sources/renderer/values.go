package main

import (
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// Merges documents of values as `helm template -f` does. The result belongs to the caller.
func mergeValues(documents []valuesDocument) (map[string]any, error) {
	merged := map[string]any{}
	for _, d := range documents {
		values, err := loader.LoadValues(strings.NewReader(d.Text))
		if err != nil {
			return nil, faultf("values", "invalid values: %v", err).at(d.Name, invalidLine(d.Text))
		}
		merged = loader.MergeMaps(merged, values)
	}
	return merged, nil
}

// Finds the line of invalid values. Helm counts lines from the begin of a document.
func invalidLine(text string) int {
	for _, part := range documentParts(text) {
		if _, err := loader.LoadValues(strings.NewReader(part.text)); err != nil {
			if line := lineOfYAMLError(err); line > 0 {
				return part.before + line
			}
			return 0
		}
	}
	return 0
}

var (
	yamlLine = regexp.MustCompile(`\bline (\d+)`)
	// The errors of the YAML library's parser. It counts their lines from 0, and those of its scanner from 1.
	fromZero = regexp.MustCompile(`did not find expected (node content|key|'-' indicator|',' or|<)`)
)

// Returns the line that an error of the YAML library names, or 0.
func lineOfYAMLError(err error) int {
	m := yamlLine.FindStringSubmatch(err.Error())
	if m == nil {
		return 0
	}
	if fromZero.MatchString(err.Error()) {
		return atoi(m[1]) + 1
	}
	return atoi(m[1])
}

// Finds the document and the line that set a value, the last document first.
func findValue(documents []valuesDocument, keys []string) (string, int) {
	for _, d := range slices.Backward(documents) {
		if line := findInText(d.Text, keys); line > 0 {
			return d.Name, line
		}
	}
	return "", 0
}

// Returns the line of a key in a text, the last document first, or 0.
func findInText(text string, keys []string) int {
	for _, part := range slices.Backward(documentParts(text)) {
		if node, err := yaml.Parse(part.text); err == nil {
			if line := lineOfKey(node.YNode(), keys); line > 0 {
				return part.before + line
			}
		}
	}
	return 0
}

// Returns the line of a key in a document, or 0.
func lineOfKey(node *yaml.Node, keys []string) int {
	line := 0
	for _, key := range keys {
		node = followed(node)
		if node == nil {
			return 0
		}
		var next *yaml.Node
		switch node.Kind {
		case yaml.MappingNode:
			for i := 0; i+1 < len(node.Content); i += 2 {
				if node.Content[i].Value == key {
					line, next = node.Content[i].Line, node.Content[i+1]
				}
			}
		case yaml.SequenceNode:
			if i, err := strconv.Atoi(key); err == nil && i < len(node.Content) {
				next = node.Content[i]
				line = next.Line
			}
		}
		if next == nil {
			return 0
		}
		node = next
	}
	return line
}

// One violation in the report of the schema library, such as "- at '/image/tag': got number, want string". Those below a
// subchart's name are about its section.
var violation = regexp.MustCompile(`^\s*- at '([^']*)': (.*)$`)

// Turns the report of a failed validation into a fault at the line of a document that set the value, or at the schema.
// The library reports violations in a random order.
func schemaFault(c *chartFolder, chartName string, documents []valuesDocument, report error) *fault {
	lines := strings.Split(strings.TrimSpace(report.Error()), "\n")
	section := ""
	var violations []string
	places := map[string][]string{}
	for _, line := range lines {
		if m := violation.FindStringSubmatch(line); m != nil {
			text := m[1] + ": " + m[2]
			if section != "" {
				text = "/" + section + text
			}
			violations = append(violations, text)
			keys := strings.Split(strings.TrimPrefix(m[1], "/"), "/")
			if m[1] == "" {
				keys = nil
			}
			if section != "" {
				keys = append([]string{section}, keys...)
			}
			places[text] = keys
		} else if name, is := strings.CutSuffix(line, ":"); is && !strings.Contains(name, " ") {
			section = name
			if name == chartName {
				section = ""
			}
		}
	}
	if len(violations) == 0 {
		return faultf("values", "%v", report).at(c.inTree("values.schema.json"), 0)
	}
	sort.Strings(violations)
	f := faultf("values", "the values do not match the chart's schema: %s", strings.Join(violations, "; "))
	for _, v := range violations {
		if name, line := findValue(documents, places[v]); line > 0 {
			return f.at(name, line)
		}
	}
	return f.at(c.inTree("values.schema.json"), 0)
}
