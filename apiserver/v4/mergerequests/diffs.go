package mergerequests

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/commit"
	"github.com/forgeplane/forgeplane/apiserver/diff"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/history"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

func (f *Family) diffTable() endpoint.Table {
	table := endpoint.Table{
		endpoint.Get(one+"/changes", f.getChanges).
			Doc("Get a merge request with its changes. Deprecated: list the diffs instead."),
		endpoint.Get(one+"/diffs", f.diffs).
			Doc("List the changes of a merge request since the merge base of its branches."),
		endpoint.Get(one+"/raw_diffs", f.rawDiffs).
			Doc("Get the changes of a merge request as a patch."),
		endpoint.Get(one+"/commits", f.commits).
			Doc("List the commits of a merge request, the newest first."),
		endpoint.Get(one+"/versions", f.versions).
			Doc("List the versions of a merge request, the newest first: a push to the source branch makes one."),
		endpoint.Get(one+"/versions/{version_id}", f.version).
			Doc("Get a version of a merge request with its commits and changes."),
	}
	for _, e := range table {
		e.Needs(auth.ReadMergeRequests).Found(f.items.MergeRequest).Anonymous(endpoint.Served)
	}
	return append(table, endpoint.Get("/projects/{id}/repository/commits/{sha}/merge_requests", f.ofCommit).Needs(auth.ReadMergeRequests).
		Anonymous(endpoint.Served).Doc("List the merge requests that have a commit, or whose merge made it, the newest first."))
}

// Changed is a merge request with its changes.
type Changed struct {
	Detailed
	Changes  []diff.Diff `json:"changes"`
	Overflow bool        `json:"overflow" doc:"Whether changes are left out because of a limit of time or size."`
}

// Version is a version of a merge request, as lists show it.
type Version struct {
	ID             int64         `json:"id"`
	HeadCommitSHA  string        `json:"head_commit_sha" doc:"Head of the source branch."`
	BaseCommitSHA  string        `json:"base_commit_sha" doc:"Merge base of the branches."`
	StartCommitSHA string        `json:"start_commit_sha" doc:"Head of the target branch."`
	CreatedAt      endpoint.Time `json:"created_at"`
	MergeRequestID int64         `json:"merge_request_id"`
	State          string        `json:"state" doc:"Always collected."`
	RealSize       string        `json:"real_size" doc:"Number of changed files."`
	PatchIDSHA     *string       `json:"patch_id_sha" doc:"Always null."`
}

// DetailedVersion is a version with its commits and changes.
type DetailedVersion struct {
	Version
	Commits []commit.Commit `json:"commits" doc:"The newest first."`
	Diffs   []diff.Diff     `json:"diffs"`
}

func showVersion(v mergerequest.Version) Version {
	return Version{
		ID: v.ID, HeadCommitSHA: v.Head, BaseCommitSHA: v.Base, StartCommitSHA: v.Start, CreatedAt: endpoint.Time(v.Created),
		MergeRequestID: v.MergeRequestID, State: "collected", RealSize: v.ChangesCount,
	}
}

type changesRequest struct {
	AccessRawDiffs bool `param:"access_raw_diffs" default:"false" doc:"Has no effect."`
	Unidiff        bool `param:"unidiff" default:"false" doc:"Whether diffs begin with the names of the files."`
}

func (f *Family) getChanges(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], r *changesRequest) (none Changed, err error) {
	m, v, err := f.latest(ctx, s)
	if err != nil {
		return none, err
	}
	all, err := f.compare(ctx, s.Subject, v)
	if err != nil {
		return none, err
	}
	d, err := f.detail(ctx, s.Subject, m)
	return Changed{Detailed: d, Changes: diff.All(all.Changes, r.Unidiff), Overflow: all.TimedOut || all.Truncated}, err
}

type diffsRequest struct {
	endpoint.Paging
	Unidiff bool `param:"unidiff" default:"false" doc:"Whether diffs begin with the names of the files."`
}

func (f *Family) diffs(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], r *diffsRequest) (none endpoint.List[diff.Diff], err error) {
	_, v, err := f.latest(ctx, s)
	if err != nil {
		return none, err
	}
	all, err := f.compare(ctx, s.Subject, v)
	if err != nil {
		return none, err
	}
	return diff.Page(r.Paging, all, r.Unidiff)
}

func (f *Family) rawDiffs(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], _ *endpoint.None) (none endpoint.Content, err error) {
	_, v, err := f.latest(ctx, s)
	if err != nil {
		return none, err
	}
	return endpoint.Content{Type: "text/plain", Size: -1, Write: func(w io.Writer) error {
		return f.reading(ctx, s.Subject, v, func(ctx context.Context, repo *git.Repository) error {
			return history.WritePatch(ctx, repo, v.Base, v.Head, w)
		})
	}}, nil
}

type commitsRequest struct{ endpoint.Paging }

func (f *Family) commits(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], r *commitsRequest) (none endpoint.List[commit.Commit], err error) {
	_, v, err := f.latest(ctx, s)
	if err != nil {
		return none, err
	}
	all, err := f.commitsOf(ctx, s.Subject, v)
	if err != nil {
		return none, err
	}
	return endpoint.Page(r.Paging, all, f.commit(s.Subject)), nil
}

type versionsRequest struct{ endpoint.Paging }

func (f *Family) versions(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], r *versionsRequest) (none endpoint.List[Version], err error) {
	m, err := f.refresh(ctx, s.Record.MergeRequest)
	if err != nil {
		return none, err
	}
	skip, size := r.Window()
	page, total, err := f.Activity.MergeRequests.Versions(ctx, m.ID, skip, size)
	if err != nil {
		return none, err
	}
	return endpoint.Cut(page, total, showVersion), nil
}

type versionRequest struct {
	VersionID int64 `param:"version_id" doc:"Id of the version."`
	Unidiff   bool  `param:"unidiff" default:"false" doc:"Whether diffs begin with the names of the files."`
}

func (f *Family) version(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], r *versionRequest) (none DetailedVersion, err error) {
	v, err := f.Activity.MergeRequests.Version(ctx, s.Record.ID, r.VersionID)
	if errors.Is(err, mergerequest.ErrVersionNotFound) {
		err = endpoint.NotFound("")
	}
	if err != nil {
		return none, err
	}
	commits, err := f.commitsOf(ctx, s.Subject, v)
	if err != nil {
		return none, err
	}
	changes, err := f.compare(ctx, s.Subject, v)
	if err == nil && changes.TimedOut {
		err = diff.Late()
	}
	if err != nil {
		return none, err
	}
	shown := DetailedVersion{Version: showVersion(v), Commits: make([]commit.Commit, len(commits)), Diffs: diff.All(changes.Changes, r.Unidiff)}
	for i, c := range commits {
		shown.Commits[i] = f.commit(s.Subject)(c)
	}
	return shown, nil
}

// latest brings the merge request of a request up to date, and returns it with its latest version. Without its source branch, it has the last version
// that was recorded; before the first version, v has no commits.
func (f *Family) latest(ctx context.Context, s auth.ProjectRecord[item.MergeRequest]) (m mergerequest.MergeRequest, v mergerequest.Version, err error) {
	if m, err = f.refresh(ctx, s.Record.MergeRequest); err != nil || m.Head != "" {
		return m, mergerequest.Version{Head: m.Head, Base: m.Base, Start: m.Start}, err
	}
	last, _, err := f.Activity.MergeRequests.Versions(ctx, m.ID, 0, 1)
	if err == nil && len(last) > 0 {
		v = last[0]
	}
	return m, v, err
}

// reading calls read with the repository of the project, unless a version has no commits. Meanwhile the repository is not removed. The answer is 404 if
// the repository no longer has the commits.
func (f *Family) reading(ctx context.Context, s auth.Subject, v mergerequest.Version, read func(context.Context, *git.Repository) error) error {
	if v.Head == "" {
		return nil
	}
	repo, err := f.Repositories.Content(ctx, s.Scope.Project)
	if ref.Missing(err) {
		return endpoint.NotFound("Commit")
	} else if err != nil {
		return err
	}
	ctx, end, err := repo.BeginRead(ctx)
	if err != nil {
		return err
	}
	defer end()
	err = read(ctx, repo)
	if failed := (*git.Error)(nil); !errors.As(err, &failed) {
		return err
	}
	// Git fails in the same way for objects that do not exist and for damaged ones.
	found, lookup := repo.Objects(ctx, v.Head, cmp.Or(v.Base, v.Head))
	if lookup == nil && (found[0].ID == "" || found[1].ID == "") {
		return endpoint.NotFound("Commit")
	}
	return err
}

// compare returns the changes of a version.
func (f *Family) compare(ctx context.Context, s auth.Subject, v mergerequest.Version) (all history.Diff, err error) {
	err = f.reading(ctx, s, v, func(ctx context.Context, repo *git.Repository) error {
		all, err = history.Compare(ctx, repo, v.Base, v.Head, diff.Patience)
		return err
	})
	return all, err
}

// commitsOf returns the commits of a version, the newest first.
func (f *Family) commitsOf(ctx context.Context, s auth.Subject, v mergerequest.Version) (all []*object.Commit, err error) {
	err = f.reading(ctx, s, v, func(ctx context.Context, repo *git.Repository) error {
		known, err := history.CommitsBetween(ctx, repo, v.Base, v.Head)
		all = slices.Clone(known)
		slices.Reverse(all)
		return err
	})
	return all, err
}

// commit returns a function that shows a commit.
func (f *Family) commit(s auth.Subject) func(*object.Commit) commit.Commit {
	url := f.WebURL + "/" + s.Scope.Path()
	return func(c *object.Commit) commit.Commit { return commit.Show(c, url) }
}
