// The renderer renders Helm charts and Kustomize bases for berth. It reads requests on standard input and writes one
// answer for each, in their order, on standard output. It uses no other file, no network and no environment variable.
//
// A frame is a length of four bytes (big-endian) and that many bytes of JSON. A request has an `id` and exactly one of
// these; the answer has the same `id` and either a field of the same name or `error`:
//
//	tree       {name, files: [{path, mode, data}]}: keeps a tree under a name. Modes are those of Git: 100644, 100755,
//	           and 120000 for a symbolic link, whose target is the data. Data is base64. The renderer keeps the trees
//	           that were used last (--trees) and answers `tree-unknown` for others.
//	helm       {tree, path, release, namespace, values: [{name, text}], kubeVersion, apiVersions, onlyApiVersions,
//	           upgrade, crds, hooks, tests, lookup, origins, once}: renders the chart at a path of a tree, as
//	           `helm template` does. Later documents of values win. `apiVersions` are added to those that Helm knows, or
//	           replace them. The answer has {chart, crds, documents, hooks, dropped, values, origins, warnings}; each
//	           document has the template it came from. The order is Helm's: crds, documents, hooks. `helm template`
//	           prints "---\n# Source: FILE\nTEXT\n" for each.
//	kustomize  {tree, path}: builds the kustomization at a path, as `kustomize build` does. The answer has {documents,
//	           warnings}; joined by "---\n", the documents are what `kustomize build` prints.
//
// An error has {kind, file, line, column, message, advice, trace}. The file is a path of the tree, or the name of a
// document of values. Kinds:
//
//	request       the request is invalid
//	tree-unknown  the renderer no longer keeps this tree: send it again
//	tree          a path or link of the tree is invalid, or leads out of the tree
//	chart         the chart, its dependencies, a template or the Kubernetes version fail
//	values        a document of values is invalid, or its values do not match the chart's schema
//	impure        the output depends on a random value, the time, the cluster, the network or the order of a map
//	outside       the source refers to something outside of the tree, or runs a program
//	kustomization Kustomize fails
//	output        the output is not UTF-8
//	limit         a limit is exceeded; after one of time or memory, the renderer ends with exit code 3
//	internal      a fault of the renderer or of a library
package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

type request struct {
	ID        uint64            `json:"id"`
	Tree      *treeRequest      `json:"tree"`
	Helm      *helmRequest      `json:"helm"`
	Kustomize *kustomizeRequest `json:"kustomize"`
}

type treeRequest struct {
	Name  string     `json:"name"`
	Files []treeFile `json:"files"`
}

type treeFile struct {
	Path string `json:"path"`
	Mode string `json:"mode"`
	Data []byte `json:"data"`
}

type helmRequest struct {
	Tree      string           `json:"tree"`
	Path      string           `json:"path"`
	Release   string           `json:"release"`
	Namespace string           `json:"namespace"`
	Values    []valuesDocument `json:"values"`
	// The version of Kubernetes. It is required: the default of Helm changes with Helm.
	KubeVersion     string   `json:"kubeVersion"`
	APIVersions     []string `json:"apiVersions"`
	OnlyAPIVersions bool     `json:"onlyApiVersions"`
	Upgrade         bool     `json:"upgrade"`
	CRDs            bool     `json:"crds"`
	Hooks           bool     `json:"hooks"`
	// Without tests, the answer has no hook with the event `test`.
	Tests bool `json:"tests"`
	// `refuse` (the default), or `empty`: a lookup finds nothing, as in `helm template`.
	Lookup string `json:"lookup"`
	// The answer has the origin of each value.
	Origins bool `json:"origins"`
	// Renders a chart without draws only once. The second render finds what the renderer does not know to be impure.
	Once bool `json:"once"`
}

type valuesDocument struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

type kustomizeRequest struct {
	Tree string `json:"tree"`
	Path string `json:"path"`
}

type answer struct {
	ID        uint64           `json:"id"`
	Tree      *treeAnswer      `json:"tree,omitempty"`
	Helm      *helmAnswer      `json:"helm,omitempty"`
	Kustomize *kustomizeAnswer `json:"kustomize,omitempty"`
	Error     *fault           `json:"error,omitempty"`
}

type treeAnswer struct {
	Files int `json:"files"`
}

type helmAnswer struct {
	Chart     chartInfo  `json:"chart"`
	CRDs      []document `json:"crds"`
	Documents []document `json:"documents"`
	Hooks     []hook     `json:"hooks"`
	// Hooks with an event that Helm does not know. They are in no output of Helm.
	Dropped  []document     `json:"dropped"`
	Values   map[string]any `json:"values"`
	Origins  []origin       `json:"origins,omitempty"`
	Warnings []string       `json:"warnings"`
}

// The place that a merged value comes from.
type origin struct {
	Keys []string `json:"keys"`
	File string   `json:"file"`
	Line int      `json:"line"`
}

type chartInfo struct {
	Name       string `json:"name"`
	Version    string `json:"version"`
	AppVersion string `json:"appVersion"`
}

type document struct {
	File string `json:"file"`
	Text string `json:"text"`
}

type hook struct {
	document
	Kind           string   `json:"kind"`
	Name           string   `json:"name"`
	Events         []string `json:"events"`
	Weight         int      `json:"weight"`
	DeletePolicies []string `json:"deletePolicies"`
	LogPolicies    []string `json:"logPolicies"`
}

type kustomizeAnswer struct {
	Documents []string `json:"documents"`
	Warnings  []string `json:"warnings"`
}

// A fault is the reason why a request fails, with its place.
type fault struct {
	Kind    string `json:"kind"`
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
	Advice  string `json:"advice,omitempty"`
	// The calls that led to this place, the outermost first.
	Trace []place `json:"trace,omitempty"`
}

type place struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column,omitempty"`
}

func (f *fault) Error() string { return f.Message }

func faultf(kind, format string, args ...any) *fault {
	return &fault{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// Sets the place of a fault.
func (f *fault) at(file string, line int) *fault {
	f.File, f.Line = file, line
	return f
}

// Sets the advice of a fault.
func (f *fault) advise(format string, args ...any) *fault {
	f.Advice = fmt.Sprintf(format, args...)
	return f
}

// Reads the next frame. The error is io.EOF where the caller closed the pipe between two frames. A frame above the limit
// is skipped and answered with a fault.
func readFrame(in io.Reader, limit int64) (*request, error) {
	var size uint32
	if err := binary.Read(in, binary.BigEndian, &size); err != nil {
		return nil, err
	}
	if int64(size) > limit {
		if _, err := io.CopyN(io.Discard, in, int64(size)); err != nil {
			return nil, err
		}
		return nil, faultf("limit", "the request has %d bytes, above the limit of %d (--max-frame)", size, limit)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(in, text); err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var r request
	if err := decoder.Decode(&r); err != nil {
		return &r, faultf("request", "the request is invalid: %v", err)
	}
	parts := 0
	for _, part := range []bool{r.Tree != nil, r.Helm != nil, r.Kustomize != nil} {
		if part {
			parts++
		}
	}
	if parts != 1 {
		return &r, faultf("request", "the request needs exactly one of `tree`, `helm` and `kustomize`")
	}
	return &r, nil
}

// Writes one frame.
func writeFrame(out io.Writer, a *answer) error {
	var frame bytes.Buffer
	frame.Write(make([]byte, 4))
	encoder := json.NewEncoder(&frame)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(a); err != nil {
		return err
	}
	binary.BigEndian.PutUint32(frame.Bytes(), uint32(frame.Len()-4))
	_, err := out.Write(frame.Bytes())
	return err
}
