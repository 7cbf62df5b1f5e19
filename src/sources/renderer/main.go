package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"sigs.k8s.io/kustomize/api/provenance"
)

// The versions whose output this program gives. The tests hold them against go.mod and the programs.
const (
	helmVersion      = "v4.3.1"
	kustomizeVersion = "v5.8.2"
)

// The sources of this program, for its identity. Two builds of them give the same output, whatever the processor.
//
//go:embed *.go go.mod go.sum
var sources embed.FS

func main() {
	var l limits
	showVersion := flag.Bool("version", false, "print the version and the identity, and end")
	flag.Int64Var(&l.frame, "max-frame", 256<<20, "bytes of a request")
	flag.Int64Var(&l.output, "max-output", 64<<20, "bytes of the documents of an answer")
	flag.IntVar(&l.documents, "max-documents", 20_000, "documents of an answer")
	flag.Int64Var(&l.memory, "max-memory", 2<<30, "bytes of memory")
	flag.DurationVar(&l.time, "timeout", 60*time.Second, "time of a render")
	kept := flag.Int("trees", 16, "trees to keep")
	flag.Parse()
	if flag.NArg() > 0 || *kept < 1 {
		flag.Usage()
		os.Exit(2)
	}
	complaints := os.Stderr
	out := isolate()
	if *showVersion {
		fmt.Fprint(out, identity())
		return
	}
	if built := provenance.GetProvenance().Semver(); built != kustomizeVersion {
		fmt.Fprintf(complaints, "this renderer does not know its version of Kustomize (%s): make it with ./build\n", built)
		os.Exit(2)
	}
	debug.SetMemoryLimit(l.memory - l.memory/8)
	debug.SetMaxStack(512 << 20)
	s := &server{limits: l, trees: trees{limit: *kept, kept: map[string]*tree{}}}
	if err := s.serve(bufio.NewReaderSize(os.Stdin, 1<<20), out); err != nil {
		fmt.Fprintf(complaints, "the renderer ends: %v\n", err)
		os.Exit(1)
	}
}

// Takes the environment, the network and the standard streams away from the libraries. Returns standard output.
func isolate() *os.File {
	os.Clearenv()
	time.Local = time.UTC
	http.DefaultTransport = noNetwork{}
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("the renderer has no network")
	}}
	out := os.Stdout
	os.Stdout, os.Stderr = nil, nil
	log.SetOutput(io.Discard)
	log.SetFlags(0)
	return out
}

// A transport without a network.
type noNetwork struct{}

func (noNetwork) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("the renderer has no network, and so does not read %s", r.URL)
}

type server struct {
	limits limits
	trees  trees
}

// Answers requests until the caller closes the pipe.
func (s *server) serve(in io.Reader, out io.Writer) error {
	for {
		r, err := readFrame(in, s.limits.frame)
		var a *answer
		if f, is := errors.AsType[*fault](err); is {
			a = &answer{Error: f}
			if r != nil {
				a.ID = r.ID
			}
		} else if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		} else {
			var fatal bool
			if a, fatal = s.limits.guard(func() *answer { return s.answer(r) }); fatal {
				a.ID = r.ID
				if err := writeFrame(out, a); err != nil {
					return err
				}
				os.Exit(3)
			}
			a.ID = r.ID
		}
		if err := writeFrame(out, a); err != nil {
			return err
		}
	}
}

// Answers one request.
func (s *server) answer(r *request) (a *answer) {
	a = &answer{}
	defer func() {
		if p := recover(); p != nil {
			a = &answer{Error: faultf("internal", "panic: %v", p)}
		}
	}()
	var err error
	switch {
	case r.Tree != nil:
		var t *tree
		if t, err = newTree(r.Tree.Files); err == nil {
			s.trees.add(r.Tree.Name, t)
			a.Tree = &treeAnswer{Files: len(t.files)}
		}
	case r.Helm != nil:
		var t *tree
		if t, err = s.trees.get(r.Helm.Tree); err == nil {
			a.Helm, err = renderHelm(t, r.Helm, s.limits)
		}
	case r.Kustomize != nil:
		var t *tree
		if t, err = s.trees.get(r.Kustomize.Tree); err == nil {
			a.Kustomize, err = buildKustomization(t, r.Kustomize, s.limits)
		}
	}
	if err != nil {
		f, is := errors.AsType[*fault](err)
		if !is {
			f = faultf("internal", "%v", err)
		}
		a = &answer{Error: f}
	}
	return a
}

// Returns what the output depends on besides the request: the sources of this program (go.sum pins the libraries) and Go.
func identity() string {
	sum := sha256.New()
	names, _ := fs.Glob(sources, "*")
	for _, name := range names {
		text, _ := sources.ReadFile(name)
		digest := sha256.Sum256(text)
		fmt.Fprintf(sum, "%s  %s\n", hex.EncodeToString(digest[:]), name)
	}
	var lines strings.Builder
	fmt.Fprintf(&lines, "berth-renderer protocol 1\nsources sha256:%s\nhelm %s\nkustomize %s\ngo %s\n",
		hex.EncodeToString(sum.Sum(nil)), helmVersion, provenance.GetProvenance().Semver(), runtime.Version())
	return lines.String()
}
