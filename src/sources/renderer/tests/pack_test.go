package tests

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"strings"
)

// Packs the files below a folder `NAME.tgz` as an archive of that name.
func packed(all files) files {
	var kept files
	archives := map[string]files{}
	var names []string
	for _, f := range all {
		folder, rest, found := strings.Cut(f.path, ".tgz/")
		if !found {
			kept = append(kept, f)
			continue
		}
		if archives[folder] == nil {
			names = append(names, folder)
		}
		archives[folder] = append(archives[folder], file{path: rest, data: f.data})
	}
	for _, name := range names {
		var archive bytes.Buffer
		zipped := gzip.NewWriter(&archive)
		tape := tar.NewWriter(zipped)
		for _, f := range archives[name] {
			header := tar.Header{Name: f.path, Mode: 0o644, Size: int64(len(f.data)), Typeflag: tar.TypeReg}
			if err := tape.WriteHeader(&header); err != nil {
				panic(err)
			}
			if _, err := tape.Write(f.data); err != nil {
				panic(err)
			}
		}
		tape.Close()
		zipped.Close()
		kept = append(kept, file{path: name + ".tgz", data: archive.Bytes()})
	}
	return kept
}
