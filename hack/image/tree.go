package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// node is a file, a symbolic link or a directory.
type node struct {
	mode    int64 // permissions; 0 of a symbolic link
	link    string
	content []byte
	dir     bool
	owner   int
}

// tree has files by their paths, without a slash at the beginning.
type tree map[string]node

// merged are the directories that are links to those in /usr. Distributions differ in which of the two has the files.
var merged = []string{"bin", "lib", "lib64", "sbin"}

// clean returns a path of a tree.
func clean(name string) string {
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	if first, _, _ := strings.Cut(name, "/"); slices.Contains(merged, first) {
		return "usr/" + name
	}
	return name
}

// readTree reads an archive. Owners, times and the bits that change the user are left out.
func readTree(archive io.Reader) (tree, error) {
	t := tree{}
	for reader := tar.NewReader(archive); ; {
		h, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return nil, err
		}
		n := node{mode: h.Mode & 0o755}
		switch h.Typeflag {
		case tar.TypeReg:
			n.content, err = io.ReadAll(reader)
		case tar.TypeSymlink:
			n.mode, n.link = 0, h.Linkname
		case tar.TypeLink:
			n = t[clean(h.Linkname)]
		default:
			continue // directories follow from the files
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", h.Name, err)
		}
		t[clean(h.Name)] = n
	}
}

// follow returns the path of the file that a path resolves to, or false if the file does not exist.
func (t tree) follow(name string) (string, bool) {
	for range 40 { // as many links as Linux follows
		name = clean(name)
		if n, ok := t[name]; ok && n.mode != 0 {
			return name, true
		}
		// The path or one of its directories is a link.
		prefix := name
		for prefix != "." && t[prefix].link == "" {
			prefix = path.Dir(prefix)
		}
		if prefix == "." {
			return "", false
		}
		target := t[prefix].link
		if !path.IsAbs(target) {
			target = path.Join(path.Dir(prefix), target)
		}
		name = target + strings.TrimPrefix(name, prefix)
	}
	return "", false
}

// layer returns a layer with the files in the order of their paths, and without times: the same files give the same layer.
func (t tree) layer() (v1.Layer, error) {
	var archive bytes.Buffer
	writer := tar.NewWriter(&archive)
	all := t.withParents()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		n := all[name]
		h := &tar.Header{Name: name, Mode: n.mode, Uid: n.owner, Gid: n.owner, ModTime: time.Unix(0, 0), Size: int64(len(n.content)), Typeflag: tar.TypeReg}
		switch {
		case n.dir:
			h.Typeflag, h.Name = tar.TypeDir, name+"/"
		case n.link != "":
			h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, n.link, 0o777
		}
		if err := writer.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := writer.Write(n.content); err != nil {
			return nil, err
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	opener := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil }
	return tarball.LayerFromOpener(opener, tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(9), tarball.WithCompressedCaching)
}

// withParents returns the tree with all directories of its files.
func (t tree) withParents() tree {
	all := maps.Clone(t)
	for name := range t {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, ok := all[dir]; !ok {
				all[dir] = node{dir: true, mode: 0o755}
			}
		}
	}
	return all
}
