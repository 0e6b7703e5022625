// Package include reads the files that a CI configuration includes, and merges them.
package include

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/forgeplane/forgeplane/internal/ci/condition"
	"github.com/forgeplane/forgeplane/internal/ci/document"
	"github.com/forgeplane/forgeplane/internal/ci/expression"
)

const (
	// MaxFiles is the maximum number of included files.
	MaxFiles = 100
	// MaxDepth is the maximum length of a chain of files that include each other.
	MaxDepth = 20
	// MaxBytes is the maximum size of all included files together.
	MaxBytes = 8 << 20
	// maxEntries is the maximum number of entries of include, also of those whose rules do not hold.
	maxEntries = 200
)

// Files reads the files of a commit.
type Files interface {
	condition.Repository
	// Read returns the content of a file. The error is fs.ErrNotExist if the file does not exist, and ErrTooLarge if it has more than limit bytes.
	Read(ctx context.Context, path string, limit int) ([]byte, error)
	// Project is the full path of the project, and Commit the id of the commit.
	Project() string
	Commit() string
}

// ErrTooLarge says that a file is too large.
var ErrTooLarge = errors.New("the file is too large")

// Projects opens commits of other projects.
type Projects interface {
	// Open returns the commit of a ref, or of the default branch if it is empty. The error is fs.ErrNotExist if there is no such ref or
	// project, or the caller must not read its code.
	Open(ctx context.Context, project, ref string) (Files, error)
}

// File is an included file.
type File struct {
	// Path is its path in the commit From, and By the commit whose file includes it.
	Path     string
	From, By Files
	// Ref is the ref by which another project is included. Other says that it is another project.
	Ref   string
	Other bool
}

// Loader loads a configuration with what it includes.
type Loader struct {
	Projects  Projects
	Variables expression.Lookup
	Context   *condition.Context

	included []File
	// entries is the number of entries of include, tried that of files, also of those that failed, bytes the size of all files, and values the
	// number of their values.
	entries, tried     int
	bytes, values      int
	trees              map[Files]*condition.Paths
	expressions        expression.Parser
	problems, warnings document.Problems
}

// Load returns the merged document. Later files take precedence over earlier ones, and a file over those that it includes. err is a failure to
// read. files can be nil if there is no commit yet.
func (l *Loader) Load(ctx context.Context, name string, content []byte, files Files) (root *document.Node, included []File, problems, warnings document.Problems, err error) {
	root, err = l.parse(ctx, name, content, files, 0)
	return root, l.included, l.problems, l.warnings, err
}

func (l *Loader) parse(ctx context.Context, name string, content []byte, in Files, depth int) (*document.Node, error) {
	root, problems, warnings := document.Parse(name, content)
	l.problems.Append(problems)
	l.warnings.Append(warnings)
	if root == nil {
		return nil, nil
	}
	if l.values += root.Size(); l.values > document.MaxNodes {
		l.problems.Add(name, 0, "", "the configuration has more than %d values, with its included files", document.MaxNodes)
		return nil, nil
	}
	if root.Get("include") == nil {
		return root, nil
	}
	var merged *document.Node
	for _, n := range root.Get("include").Flatten() {
		one, err := l.include(ctx, n, in, depth+1)
		if err != nil {
			return nil, err
		}
		merged = document.Merge(merged, one)
	}
	return document.Merge(merged, root.Without("include")), nil
}

// include returns the merged document of an entry of include.
func (l *Loader) include(ctx context.Context, n *document.Node, in Files, depth int) (merged *document.Node, err error) {
	if l.tooMany(n, &l.entries, maxEntries) {
		return nil, nil
	}
	e, ok := l.entry(n)
	if !ok {
		return nil, nil
	}
	if e.ruled {
		rule, holds, err := l.Context.First(ctx, e.rules, l.Variables)
		if err != nil || !holds || rule.When == "never" {
			return nil, err
		}
	}
	from := in
	if e.project != "" {
		if from, err = l.open(ctx, n, e); err != nil || from == nil {
			return nil, err
		}
	}
	for _, pathname := range e.paths {
		paths, err := l.paths(ctx, n, from, e, pathname)
		if err != nil {
			return nil, err
		}
		for _, p := range paths {
			one, err := l.file(ctx, n, File{Path: p, From: from, By: in, Ref: e.ref, Other: e.project != ""}, depth)
			if err != nil {
				return nil, err
			}
			merged = document.Merge(merged, one)
		}
	}
	return merged, nil
}

func (l *Loader) open(ctx context.Context, n *document.Node, e entry) (Files, error) {
	if l.Projects == nil {
		l.problems.At(n, "include:project", "other projects cannot be included here")
		return nil, nil
	}
	from, err := l.Projects.Open(ctx, e.project, e.ref)
	if errors.Is(err, fs.ErrNotExist) {
		l.problems.At(n, "include:project", "there is no project %q with the ref %q, or you cannot read its code", e.project, cmp.Or(e.ref, "HEAD"))
		return nil, nil
	}
	return from, err
}

// paths returns the files that a path names, which can be a pattern in the same project.
func (l *Loader) paths(ctx context.Context, n *document.Node, from Files, e entry, name string) ([]string, error) {
	name = strings.TrimPrefix(name, "/")
	if e.project != "" || !strings.Contains(name, "*") || from == nil {
		return []string{name}, nil
	}
	tree, err := l.tree(ctx, from)
	if err != nil {
		return nil, err
	}
	found, err := tree.Matching(ctx, name, MaxFiles+1)
	if err == nil && len(found) == 0 {
		l.problems.At(n, "include:local", "no file matches %q", name)
	}
	return found, err
}

// tree returns the paths of a commit.
func (l *Loader) tree(ctx context.Context, from Files) (*condition.Paths, error) {
	if known := l.trees[from]; known != nil {
		return known, nil
	}
	all, err := from.Paths(ctx)
	if err != nil {
		return nil, err
	}
	if l.trees == nil {
		l.trees = map[Files]*condition.Paths{}
	}
	l.trees[from] = l.Context.NewPaths(all)
	return l.trees[from], nil
}

// file reads one file.
func (l *Loader) file(ctx context.Context, n *document.Node, f File, depth int) (*document.Node, error) {
	key := "include:local"
	name := f.Path
	if f.Other {
		key, name = "include:file", f.From.Project()+":"+f.Path
	}
	switch {
	case depth > MaxDepth:
		l.problems.At(n, key, "more than %d files include each other", MaxDepth)
		return nil, nil
	case l.tooMany(n, &l.tried, MaxFiles):
		return nil, nil
	case !isYAML(f.Path):
		l.problems.At(n, key, "the name of %q must end in .yml or .yaml", f.Path)
		return nil, nil
	}
	content, err := []byte(nil), fs.ErrNotExist
	if f.From != nil && fs.ValidPath(f.Path) { // no other path can be that of a file in a commit
		content, err = f.From.Read(ctx, f.Path, document.MaxBytes)
	}
	l.bytes += len(content)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		l.problems.At(n, key, "there is no file %q", name)
		return nil, nil
	case errors.Is(err, ErrTooLarge):
		l.problems.At(n, key, "the file %q is larger than %d bytes", name, document.MaxBytes)
		return nil, nil
	case l.bytes > MaxBytes:
		l.problems.At(n, key, "the included files are larger than %d bytes", MaxBytes)
		return nil, nil
	case err != nil:
		return nil, err
	}
	l.included = append(l.included, f)
	return l.parse(ctx, name, content, f.From, depth)
}

// tooMany counts an entry of include or a file.
func (l *Loader) tooMany(n *document.Node, count *int, most int) bool {
	if *count++; *count <= most {
		return false
	}
	l.problems.At(n, "include", "the configuration includes more than %d files", MaxFiles)
	return true
}

func isYAML(name string) bool {
	extension := path.Ext(name)
	return extension == ".yml" || extension == ".yaml"
}
