package pipeline

import (
	"context"
	"errors"
	"fmt"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"
)

// ErrEnded says that a pipeline has ended.
var ErrEnded = errors.New("the pipeline has ended")

// Head is the head of a merge request: a commit of a branch of the source project.
type Head struct {
	Project      types.UID
	Branch, SHA  string
	MergeRequest int64
}

// Heads returns the newest pipeline of each head, apart from child pipelines. A pipeline that is about the merge request takes precedence over a pipeline
// of the branch.
func (s *Store) Heads(ctx context.Context, of ...Head) (map[Head]Pipeline, error) {
	found := map[Head]Pipeline{}
	if len(of) == 0 {
		return found, nil
	}
	projects, shas := make([]types.UID, len(of)), make([]string, len(of))
	for i, h := range of {
		projects[i], shas[i] = h.Project, h.SHA
	}
	var some []Pipeline
	err := s.db.Read(ctx, "finding the pipelines of commits", func(ctx context.Context, db bun.IDB) error {
		newest := db.NewSelect().Model((*Pipeline)(nil)).ColumnExpr("max(id)").Where("subject_uid IN (?)", bun.List(projects)).
			Where("sha IN (?)", bun.List(shas)).Where("NOT tag").Where("source <> ?", SourceParent).Group("subject_uid", "sha", "ref", "merge_request_id")
		return db.NewSelect().Model(&some).Where("id IN (?)", newest).Scan(ctx)
	})
	newest := make(map[Head]Pipeline, len(some))
	for _, p := range some {
		newest[Head{p.In.UID, p.Branch(), p.SHA, p.MergeRequest}] = p
	}
	for _, h := range of {
		ofBranch := h
		ofBranch.MergeRequest = 0
		if p, ok := newest[h]; ok {
			found[h] = p
		} else if p, ok := newest[ofBranch]; ok {
			found[h] = p
		}
	}
	return found, err
}

// awaitLike makes a new pipeline awaited if another one of its commit is, and returns that.
func (p *Pipeline) awaitLike(ctx context.Context, db bun.IDB) (former []Pipeline, err error) {
	if p.Tag || p.Source == SourceParent {
		return nil, nil
	}
	err = db.NewSelect().Model(&former).Where("subject_uid = ?", p.In.UID).Where("sha = ?", p.SHA).Where("awaited").Order("id DESC").Limit(1).Scan(ctx)
	p.Awaited = len(former) > 0
	return former, err
}

// Await adds a task to the queue of awaited pipelines when a pipeline ends, also when it ends again after a retry, and when a newer pipeline of its
// commit is created. The error is ErrEnded if it has
// ended before.
func (s *Store) Await(ctx context.Context, id int64) error {
	err := s.db.Write(ctx, fmt.Sprintf("awaiting pipeline %d", id), func(ctx context.Context, db bun.IDB) error {
		return found(db.NewUpdate().Model((*Pipeline)(nil)).Set("awaited = ?", true).Where("id = ?", id).
			Where("status NOT IN (?)", bun.List([]Status{Success, Failed, Canceled, Skipped})).Exec(ctx))
	})
	if errors.Is(err, ErrNotFound) {
		return ErrEnded
	}
	return err
}
