package repositories

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/snapshot"
)

// archives is the maximum number of archives per minute (API behaviour, section 2.1).
const archives = 5

// archiveFormats are the suffixes of the path, and their formats.
var archiveFormats = []struct {
	suffix string
	format snapshot.ArchiveFormat
}{
	{"", snapshot.TarGzip},
	{".tar.gz", snapshot.TarGzip}, {".tgz", snapshot.TarGzip}, {".gz", snapshot.TarGzip},
	{".tar.bz2", snapshot.TarBzip2}, {".tbz", snapshot.TarBzip2}, {".tbz2", snapshot.TarBzip2}, {".tb2", snapshot.TarBzip2}, {".bz2", snapshot.TarBzip2},
	{".tar", snapshot.Tar}, {".zip", snapshot.Zip},
}

// archiveTable returns an endpoint for each format. They share a limit.
func (f *Family) archiveTable() (table endpoint.Table) {
	for _, a := range archiveFormats {
		archive := func(ctx context.Context, s auth.Project, r *archiveRequest) (endpoint.Content, error) {
			return f.archive(ctx, s, r, a.format)
		}
		table = append(table, endpoint.Get("/projects/{id}/repository/archive"+a.suffix, archive).
			Limited(archives, "archive").Download().Also(http.StatusInsufficientStorage).Doc("Get the files of a commit as a "+string(a.format)+" archive."))
	}
	return table
}

type archiveRequest struct {
	SHA  string `param:"sha" doc:"A branch, tag or commit; the default branch if it is not given."`
	Path string `param:"path" doc:"The directory or file to include; everything if it is not given."`

	ExcludePaths    []string `param:"exclude_paths" comma:"" doc:"Paths to exclude, with everything below them."`
	IncludeLFSBlobs bool     `param:"include_lfs_blobs" default:"true" doc:"Has no effect: files are sent as stored in the repository."`
}

// maxExcluded is the maximum number of excluded paths.
const maxExcluded = 100

func (f *Family) archive(ctx context.Context, s auth.Project, r *archiveRequest, format snapshot.ArchiveFormat) (endpoint.Content, error) {
	repo, ref, commit, err := f.reference(ctx, s, r.SHA)
	if err != nil {
		return endpoint.Content{}, orNotFound(err, endpoint.NotFound("File"))
	}
	path, ok := object.CleanPath(r.Path)
	if !ok || slices.ContainsFunc(r.ExcludePaths, func(p string) bool { _, ok := object.CleanPath(p); return !ok }) {
		return endpoint.Content{}, endpoint.NotFound("File")
	}
	if len(r.ExcludePaths) > maxExcluded {
		return endpoint.Content{}, endpoint.Parameters("exclude_paths is too long (maximum is 100 paths)")
	}
	found, err := repo.Objects(ctx, commit+":"+path)
	if err != nil {
		return endpoint.Content{}, orNotFound(err, endpoint.NotFound("File"))
	}
	if found[0].Type != "tree" && found[0].Type != "blob" {
		return endpoint.Content{}, endpoint.NotFound("File")
	}
	name := s.Scope.Project.Spec.Path + "-" + dashed(ref) + "-" + commit
	if path != "" {
		name += "-" + dashed(path)
	}
	kind := "application/octet-stream"
	if format == snapshot.Zip {
		kind = "application/zip"
	}
	return endpoint.Content{
		Type: kind, Size: -1, Header: endpoint.Attachment(name + "." + string(format)),
		Write: func(w io.Writer) error {
			err := snapshot.WriteArchive(ctx, repo, snapshot.Archive{Commit: commit, Path: path, Exclude: r.ExcludePaths, Prefix: name, Format: format}, w)
			return orNotFound(err, endpoint.NotFound("File"))
		},
	}, nil
}

// reference is commit that also returns the name of the revision; the default branch is used if none is given.
func (f *Family) reference(ctx context.Context, s auth.Project, revision string) (repo *git.Repository, name, commit string, err error) {
	if revision != "" {
		repo, commit, err = f.commit(ctx, s, revision)
		return repo, revision, commit, err
	}
	if repo, err = f.repository(ctx, s); err != nil {
		return nil, "", "", err
	}
	head, err := refs.ReadHead(ctx, repo)
	if err == nil && head.Commit == "" {
		err = refs.ErrNotFound
	}
	return repo, head.Branch, head.Commit, err
}

func dashed(text string) string { return strings.ReplaceAll(text, "/", "-") }
