package transfer

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/internal/disk"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
)

// admission has the limits for objects from outside, which must pass before they count as part of a repository.
type admission struct {
	// objects is the directory of the objects, relative to that of the repository.
	objects string
	// each and together are the maximum unpacked sizes of one object and of all objects, in bytes. 0 means no limit.
	each, together int64
	// large is the end of the sentence about a single object that is too large, and much about all objects.
	large string
	much  error
}

// admitImport returns a *git.LimitError if the objects of the repository are too large for an import.
func admitImport(ctx context.Context, r *git.Repository) error {
	l := r.Engine().Limits()
	return admit(ctx, r, admission{
		objects: "objects", each: l.Push, together: l.ImportUnpacked,
		large: "the server allows an object",
		much: process.Limitf("The repository has more than the %s that the server allows all objects of an import together when they are unpacked.",
			process.FormatBytes(l.ImportUnpacked)),
	})
}

// mostExpansion is the maximum ratio of a size to its size after compression with zlib.
const mostExpansion = 1032

// admit checks the unpacked sizes of the objects, of each and of all together. Deltas can unpack to any size.
func admit(ctx context.Context, r *git.Repository, a admission) error {
	if a.each == 0 && a.together == 0 {
		return nil
	}
	bytes, packed := int64(0), false
	err := disk.Walk(ctx, filepath.Join(r.Dir(), a.objects), func(path string, info fs.FileInfo) error {
		if !info.IsDir() {
			bytes += info.Size()
			packed = packed || strings.HasSuffix(path, ".pack")
		}
		return nil
	})
	if err != nil {
		return err
	}
	fits := func(limit int64) bool { return limit == 0 || bytes <= limit/mostExpansion }
	if !packed && fits(a.each) && fits(a.together) {
		return nil
	}
	c := process.In(r.Dir(), "cat-file", "--batch-all-objects", "--unordered", "--buffer", "--batch-check=%(objectname) %(objectsize)")
	c.Env = append(c.Env, "GIT_OBJECT_DIRECTORY="+a.objects)
	return r.Pipe(ctx, c, a.check)
}

// check reads the ids and sizes of the objects.
func (a admission) check(sizes io.Reader) error {
	sum := int64(0)
	for lines := bufio.NewScanner(sizes); ; {
		if !lines.Scan() {
			return lines.Err()
		}
		id, text, _ := strings.Cut(lines.Text(), " ")
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fmt.Errorf("git cat-file: unexpected line %.100q", lines.Bytes())
		}
		if a.each > 0 && n > a.each {
			return process.Limitf("The object %s has %d bytes when it is unpacked, more than the %s that %s.", id, n, process.FormatBytes(a.each), a.large)
		}
		if sum += min(n, math.MaxInt64-sum); a.together > 0 && sum > a.together {
			return a.much
		}
	}
}
