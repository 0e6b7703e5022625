// Package hostile creates repositories that are small on disk but expensive to process, and measures the resources that git needs to serve
// them.
package hostile

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/forgeplane/forgeplane/test/bench/gitclient"
)

// Repository is one kind of hostile repository.
type Repository struct {
	// Name is the name, and About describes the contents.
	Name, About string
	fill        func(ctx context.Context, in source) error
}

// Scale is the size of the repositories.
type Scale struct {
	// Zeros is the number of bytes in a file of zeros, Entries the number of files in a directory, Depth the depth of nested directories of ten
	// entries each, Deltas the length of a chain of deltas, and Refs the number of tags. Attributes is the number of patterns in a .gitattributes
	// of a repository that has one file for every 100 patterns.
	Zeros                        int64
	Entries, Depth, Deltas, Refs int
	Attributes                   int
}

// Full is the scale of "make bench".
var Full = Scale{Zeros: 1 << 30, Entries: 1_000_000, Depth: 10, Deltas: 4095, Refs: 1_000_000, Attributes: 1_000_000}

// Repositories returns all repositories.
func (s Scale) Repositories() []Repository {
	return []Repository{
		{"zeros", fmt.Sprintf("a file of %d MiB of zeros", s.Zeros>>20), s.zeros},
		{"wide", fmt.Sprintf("a directory of %d files", s.Entries), s.wide},
		{"nest", fmt.Sprintf("10^%d paths in %d trees", s.Depth, s.Depth), s.nest},
		{"deltas", fmt.Sprintf("a file behind %d deltas", s.Deltas), s.deltas},
		{"attributes", fmt.Sprintf("%d attributes for %d files", s.Attributes, s.Attributes/100), s.attributes},
		{"refs", fmt.Sprintf("%d tags", s.Refs), s.refs},
	}
}

// source is a repository that is being filled.
type source struct {
	client *gitclient.Client
	dir    string
}

// Make creates the repository in a directory that does not exist yet: bare, in one pack, with a branch main.
func (r Repository) Make(ctx context.Context, client *gitclient.Client, dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	in := source{client, dir}
	if _, err := in.git(ctx, nil, "init", "--quiet", "--bare", "--initial-branch=main"); err != nil {
		return err
	}
	if err := r.fill(ctx, in); err != nil {
		return fmt.Errorf("making %s: %w", r.About, err)
	}
	return nil
}

func (s source) git(ctx context.Context, stdin io.Reader, args ...string) (string, error) {
	return s.client.Run(ctx, s.dir, stdin, args...)
}

// commit commits a tree to main, and packs everything.
func (s source) commit(ctx context.Context, tree string) error {
	commit, err := s.git(ctx, strings.NewReader("Hostile\n"), "commit-tree", tree)
	if err != nil {
		return err
	}
	if _, err := s.git(ctx, nil, "update-ref", "refs/heads/main", commit); err != nil {
		return err
	}
	_, err = s.git(ctx, nil, "-c", "core.bigFileThreshold=1m", "repack", "-a", "-d", "-q")
	return err
}

func (s Scale) zeros(ctx context.Context, in source) error {
	name := filepath.Join(in.dir, "zeros")
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	err = file.Truncate(s.Zeros)
	_ = file.Close()
	if err != nil {
		return err
	}
	blob, err := in.git(ctx, nil, "-c", "core.bigFileThreshold=1m", "hash-object", "-w", "--no-filters", name)
	if err != nil {
		return err
	}
	tree, err := in.git(ctx, strings.NewReader("100644 blob "+blob+"\tzeros\n"), "mktree")
	if err != nil {
		return err
	}
	return in.commit(ctx, tree)
}

func (s source) blob(ctx context.Context) (string, error) {
	return s.git(ctx, strings.NewReader("a file\n"), "hash-object", "-w", "--stdin")
}

func (s Scale) wide(ctx context.Context, in source) error {
	blob, err := in.blob(ctx)
	if err != nil {
		return err
	}
	tree, err := in.git(ctx, lines(s.Entries, func(i int) string { return fmt.Sprintf("100644 blob %s\tfile-%07d\n", blob, i) }), "mktree")
	if err != nil {
		return err
	}
	return in.commit(ctx, tree)
}

func (s Scale) nest(ctx context.Context, in source) error {
	entry, err := in.blob(ctx)
	entry = "100644 blob " + entry
	for range s.Depth {
		if err != nil {
			return err
		}
		entry, err = in.git(ctx, lines(10, func(i int) string { return fmt.Sprintf("%s\t%d\n", entry, i) }), "mktree")
		entry = "040000 tree " + entry
	}
	if err != nil {
		return err
	}
	return in.commit(ctx, entry[len(entry)-40:])
}

// attributes has a .gitattributes with macros, and with patterns that match no file, each of which git tries with each file.
func (s Scale) attributes(ctx context.Context, in source) error {
	attributes, err := in.git(ctx, lines(s.Attributes, func(i int) string {
		if i%50 == 0 {
			return fmt.Sprintf("[attr]macro%d export-ignore\n", i)
		}
		return fmt.Sprintf("*%07d*x*y attribute%d\n", i, i%1000)
	}), "hash-object", "-w", "--stdin")
	if err != nil {
		return err
	}
	blob, err := in.blob(ctx)
	if err != nil {
		return err
	}
	tree, err := in.git(ctx, lines(s.Attributes/100+1, func(i int) string {
		if i == 0 {
			return "100644 blob " + attributes + "\t.gitattributes\n"
		}
		return fmt.Sprintf("100644 blob %s\tfile%06d\n", blob, i)
	}), "mktree")
	if err != nil {
		return err
	}
	return in.commit(ctx, tree)
}

// deltas has the given number of versions of a file, each of which git constructs from the previous one.
func (s Scale) deltas(ctx context.Context, in source) error {
	file := slices.Collect(func(yield func(string) bool) {
		for i := range 2000 {
			if !yield(fmt.Sprintf("line %d of a file that has some more of them\n", i*i)) {
				return
			}
		}
	})
	stream := lines(s.Deltas+1, func(i int) string {
		file[i%len(file)] = fmt.Sprintf("version %d of this line, unlike all others\n", i)
		text := strings.Join(file, "")
		return fmt.Sprintf("commit refs/heads/main\ncommitter a <a> %d +0000\ndata 2\nx\nM 100644 inline file\ndata %d\n%s\n", i, len(text), text)
	})
	_, err := in.git(ctx, stream, "fast-import", "--quiet", fmt.Sprintf("--depth=%d", s.Deltas))
	return err
}

func (s Scale) refs(ctx context.Context, in source) error {
	blob, err := in.blob(ctx)
	if err != nil {
		return err
	}
	tree, err := in.git(ctx, strings.NewReader("100644 blob "+blob+"\tfile\n"), "mktree")
	if err != nil {
		return err
	}
	if err := in.commit(ctx, tree); err != nil {
		return err
	}
	head, err := in.git(ctx, nil, "rev-parse", "main")
	if err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(in.dir, "packed-refs"))
	if err != nil {
		return err
	}
	defer file.Close()
	out := bufio.NewWriter(file)
	fmt.Fprintln(out, "# pack-refs with: peeled fully-peeled sorted ")
	if _, err := io.Copy(out, lines(s.Refs, func(i int) string { return fmt.Sprintf("%s refs/tags/v%07d\n", head, i) })); err != nil {
		return err
	}
	return out.Flush()
}

// lines returns a reader of a number of texts, one after the other.
func lines(number int, text func(i int) string) io.Reader {
	r, w := io.Pipe()
	go func() {
		out := bufio.NewWriter(w)
		for i := range number {
			if _, err := out.WriteString(text(i)); err != nil {
				return // the reader is closed
			}
		}
		_ = w.CloseWithError(out.Flush())
	}()
	return r
}
