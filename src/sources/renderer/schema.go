package main

import (
	"bytes"
	"encoding/json"
	"path"
	"regexp"
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"
)

// The schema of schemas, which the library holds.
var metaschema = regexp.MustCompile(`^https?://json-schema\.org/(draft-0[467]/schema|draft/20(19-09|20-12)/(schema|meta/[a-z-]+))$`)

// Helm reads the values' schema under this address.
const schemaBase = "file:///values.schema.json"

// Refuses a schema of values that refers to another file or address: Helm would fetch it.
func checkSchemas(c *chartFolder, parent *chart.Chart) error {
	below := strings.TrimPrefix(strings.TrimPrefix(parent.ChartFullPath(), parent.Root().Name()), "/")
	if parent.Schema != nil {
		file := c.inTree(path.Join(below, "values.schema.json"))
		if err := checkSchema(file, parent.Schema); err != nil {
			return err
		}
	}
	for _, sub := range parent.Dependencies() {
		if err := checkSchemas(c, sub); err != nil {
			return err
		}
	}
	return nil
}

func checkSchema(file string, text []byte) error {
	var schema any
	if err := json.Unmarshal(text, &schema); err != nil {
		line := 0
		if syntax, is := err.(*json.SyntaxError); is {
			line = lineAt(text, int(syntax.Offset))
		}
		return faultf("chart", "the schema of values is invalid: %v", err).at(file, line)
	}
	base := schemaBase
	if root, is := schema.(map[string]any); is {
		if id, is := root["$id"].(string); is {
			base = strings.TrimSuffix(id, "#")
		}
	}
	if reference := foreignReference(schema, base); reference != "" {
		quoted, _ := json.Marshal(reference)
		return faultf("outside", "the schema of values refers to `%s`, outside of the schema", reference).
			at(file, lineAt(text, max(bytes.Index(text, quoted), 0))).
			advise("Copy what it refers to into the schema, under `$defs`.")
	}
	return nil
}

// Returns a reference that is not to a place in the schema itself, or nothing. Those to a part with an `$id` are refused
// too: the library looks for these parts only in some places of a schema, and fetches others.
func foreignReference(part any, base string) string {
	switch part := part.(type) {
	case map[string]any:
		for _, key := range []string{"$ref", "$dynamicRef", "$recursiveRef", "$schema"} {
			reference, is := part[key].(string)
			address, _, _ := strings.Cut(reference, "#")
			if is && address != "" && address != base && !metaschema.MatchString(address) {
				return reference
			}
		}
		for _, key := range sortedKeys(part) {
			if reference := foreignReference(part[key], base); reference != "" {
				return reference
			}
		}
	case []any:
		for _, item := range part {
			if reference := foreignReference(item, base); reference != "" {
				return reference
			}
		}
	}
	return ""
}
