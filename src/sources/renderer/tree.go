package main

import (
	"bytes"
	"path"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// A tree is a set of files that a request sent. Symbolic links are resolved when the tree arrives: each file that is
// reachable over a link is listed under that path too.
type tree struct {
	files map[string][]byte
	// Where each linked path leads. A linked folder has an entry of its own; the paths below it have none.
	links map[string]string
	// The file system that Kustomize reads, made by the first build.
	memory filesys.FileSystem
}

// More links than this on one path are a cycle, as in Linux.
const maxLinks = 40

// More files than this, links followed, are a mistake: two links to each other's folder double the files at each level.
const maxTreeFiles = 200_000

// Checks the files of a request and resolves its links.
func newTree(files []treeFile) (*tree, error) {
	regular := map[string][]byte{}
	targets := map[string]string{}
	folders := map[string]bool{"": true}
	for _, file := range files {
		if reason := invalidPath(file.Path); reason != "" {
			return nil, faultf("tree", "the path `%s` %s", file.Path, reason).at(file.Path, 0)
		}
		if _, twice := regular[file.Path]; twice || targets[file.Path] != "" {
			return nil, faultf("tree", "the path `%s` appears twice", file.Path).at(file.Path, 0)
		}
		switch file.Mode {
		case "100644", "100755":
			regular[file.Path] = file.Data
		case "120000":
			target := string(file.Data)
			if target == "" || path.IsAbs(target) || strings.Contains(target, "\\") {
				return nil, outsideLink(file.Path, target)
			}
			targets[file.Path] = target
		default:
			return nil, faultf("tree", "`%s` has the mode `%s`: only files and symbolic links are allowed", file.Path, file.Mode).
				at(file.Path, 0)
		}
		for folder := path.Dir(file.Path); folder != "."; folder = path.Dir(folder) {
			folders[folder] = true
		}
	}
	for name := range folders {
		if _, is := regular[name]; is || targets[name] != "" {
			return nil, faultf("tree", "`%s` is a file and a folder", name).at(name, 0)
		}
	}
	links := map[string]string{}
	for _, link := range sortedKeys(targets) {
		resolved, err := resolveLink(link, targets)
		if err != nil {
			return nil, err
		}
		if _, is := regular[resolved]; !is && !folders[resolved] {
			return nil, faultf("tree", "the link `%s` leads to `%s`, which does not exist", link, targets[link]).at(link, 0)
		}
		links[link] = resolved
	}
	t := &tree{files: regular, links: links}
	return t, t.followLinks()
}

// Reports what is wrong with a path, or nothing.
func invalidPath(name string) string {
	switch {
	case name == "" || path.IsAbs(name) || path.Clean(name) != name || name == "." || name == ".." ||
		strings.HasPrefix(name, "../"):
		return "is not a clean relative path"
	case strings.ContainsAny(name, "\\\x00\n"):
		return "has a backslash, a null byte or a line break"
	}
	return ""
}

// Resolves a link, and the links on the way of its target, to a path without links.
func resolveLink(link string, targets map[string]string) (string, error) {
	rest := strings.Split(link, "/")
	done := ""
	for followed := 0; len(rest) > 0; {
		step := rest[0]
		rest = rest[1:]
		switch step {
		case "", ".":
			continue
		case "..":
			if done == "" {
				return "", outsideLink(link, targets[link])
			}
			done = strings.TrimPrefix(path.Dir("/"+done), "/")
			continue
		}
		next := path.Join(done, step)
		target, is := targets[next]
		if !is {
			done = next
			continue
		}
		if followed++; followed > maxLinks {
			return "", faultf("tree", "the link `%s` leads in a circle", link).at(link, 0)
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return done, nil
}

func outsideLink(link, target string) *fault {
	return faultf("tree", "the link `%s` leads to `%s`, outside of the tree", link, target).at(link, 0).
		advise("Replace the link by a copy of the file.")
}

// Lists the files behind links under the paths of the links.
func (t *tree) followLinks() error {
	if len(t.links) == 0 {
		return nil
	}
	all := map[string][]byte{}
	var visit func(from, to string, open []string) error
	visit = func(from, to string, open []string) error {
		if data, is := t.files[from]; is {
			all[to] = data
			return nil
		}
		if slices.Contains(open, from) || len(open) > maxLinks {
			return faultf("tree", "the link `%s` leads to a folder that contains the link", to).at(to, 0)
		}
		open = append(slices.Clip(open), from)
		for name, data := range t.files {
			if below, is := inside(from, name); is {
				all[path.Join(to, below)] = data
			}
		}
		if len(all) > maxTreeFiles {
			return faultf("limit", "the tree has more than %d files behind links", maxTreeFiles)
		}
		for link, target := range t.links {
			if below, is := inside(from, link); is {
				if err := visit(target, path.Join(to, below), open); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := visit("", "", nil); err != nil {
		return err
	}
	t.files = all
	return nil
}

// Returns a path relative to a folder, and whether it is below the folder.
func inside(folder, name string) (string, bool) {
	if folder == "" {
		return name, true
	}
	return strings.CutPrefix(name, folder+"/")
}

// Resolves the links on the way of a path.
func (t *tree) real(name string) string {
	for range maxLinks {
		link, target := "", ""
		for end := 0; end < len(name) && link == ""; {
			next := strings.IndexByte(name[end:], '/')
			if next < 0 {
				next = len(name) - end
			}
			end += next
			if to, is := t.links[name[:end]]; is {
				link, target = name[:end], to
			}
			end++
		}
		if link == "" {
			break
		}
		name = path.Join(target, strings.TrimPrefix(name, link))
	}
	return name
}

// Returns the paths below a folder, relative to it, in the order in which a walk meets them: each folder's names sorted.
func (t *tree) below(folder string) []string {
	var names []string
	for name := range t.files {
		if below, is := inside(folder, name); is {
			names = append(names, below)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
	})
	return names
}

// Returns the folder of a request as a clean path; the root is empty.
func cleanFolder(folder string) (string, error) {
	cleaned := path.Clean("/" + folder)[1:]
	if cleaned != strings.TrimSuffix(folder, "/") && folder != "." && folder != "./" {
		return "", faultf("request", "the path `%s` is not a clean relative path", folder)
	}
	return cleaned, nil
}

// Returns the line of an offset, from 1.
func lineAt(text []byte, offset int) int {
	return bytes.Count(text[:min(max(offset, 0), len(text))], []byte("\n")) + 1
}

// Returns the number of a text that holds digits or nothing.
func atoi(digits string) int {
	number, _ := strconv.Atoi(digits)
	return number
}

// Returns the keys of a map, sorted.
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// The trees that were used last, the most recent at the end.
type trees struct {
	limit int
	names []string
	kept  map[string]*tree
}

func (ts *trees) add(name string, t *tree) {
	ts.touch(name)
	ts.kept[name] = t
	for len(ts.names) > ts.limit {
		delete(ts.kept, ts.names[0])
		ts.names = ts.names[1:]
	}
}

func (ts *trees) get(name string) (*tree, error) {
	t, is := ts.kept[name]
	if !is {
		return nil, faultf("tree-unknown", "no tree is named `%s`", name)
	}
	ts.touch(name)
	return t, nil
}

func (ts *trees) touch(name string) {
	ts.names = append(slices.DeleteFunc(ts.names, func(other string) bool { return other == name }), name)
}
