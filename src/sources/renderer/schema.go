package main

import (
	"bytes"
	"encoding/json"
	"net/url"
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
	base, _ := url.Parse(schemaBase)
	known := map[string]bool{schemaBase: true}
	collectIDs(schema, base, known)
	if reference := foreignReference(schema, base, known); reference != "" {
		quoted, _ := json.Marshal(reference)
		return faultf("outside", "the schema of values refers to `%s`, outside of the schema", reference).
			at(file, lineAt(text, max(bytes.Index(text, quoted), 0))).
			advise("Copy what it refers to into the schema, under `$defs`.")
	}
	return nil
}

// Returns the base address of a part of a schema: `$id` changes it.
func baseOf(part map[string]any, base *url.URL) *url.URL {
	if id, is := part["$id"].(string); is {
		if resolved, err := base.Parse(id); err == nil {
			return resolved
		}
	}
	return base
}

// Collects the addresses of the parts of a schema. What looks like an address in a value has none.
func collectIDs(part any, base *url.URL, known map[string]bool) {
	switch part := part.(type) {
	case map[string]any:
		base = baseOf(part, base)
		known[withoutFragment(base)] = true
		for _, key := range sortedKeys(part) {
			switch key {
			case "const", "default", "enum", "examples":
			default:
				collectIDs(part[key], base, known)
			}
		}
	case []any:
		for _, item := range part {
			collectIDs(item, base, known)
		}
	}
}

// Returns a reference that leads out of the schema, or nothing.
func foreignReference(part any, base *url.URL, known map[string]bool) string {
	switch part := part.(type) {
	case map[string]any:
		base = baseOf(part, base)
		for _, key := range []string{"$ref", "$dynamicRef", "$recursiveRef", "$schema"} {
			reference, is := part[key].(string)
			if !is {
				continue
			}
			resolved, err := base.Parse(reference)
			if err != nil || !known[withoutFragment(resolved)] && !metaschema.MatchString(withoutFragment(resolved)) {
				return reference
			}
		}
		for _, key := range sortedKeys(part) {
			if reference := foreignReference(part[key], base, known); reference != "" {
				return reference
			}
		}
	case []any:
		for _, item := range part {
			if reference := foreignReference(item, base, known); reference != "" {
				return reference
			}
		}
	}
	return ""
}

func withoutFragment(address *url.URL) string {
	bare := *address
	bare.Fragment, bare.RawFragment = "", ""
	return bare.String()
}
