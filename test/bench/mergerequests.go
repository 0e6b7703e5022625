package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/uptrace/bun"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/activity"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/milestone"
	"github.com/forgeplane/forgeplane/internal/reaction"
	"github.com/forgeplane/forgeplane/test/bench/figures"
	"github.com/forgeplane/forgeplane/test/bench/gitclient"
	"github.com/forgeplane/forgeplane/test/bench/testbed"
	"github.com/forgeplane/forgeplane/test/bench/traffic"
)

const (
	manyMergeRequests = 100_000
	// mergeRequestBatch is the number of merge requests that are stored at once.
	mergeRequestBatch = 1000

	mergeRounds = 31
	// filterTime is the duration of the requests with one filter.
	filterTime = time.Second
	// mergeChoices is the number of labels, milestones and target branches of the merge requests.
	mergeChoices = 10
)

func mergeRequestRowsUnmeasured() []*figures.Row {
	return []*figures.Row{
		{ID: rowMergeRequestList, Name: "list 20 of 100,000 merge requests", Unit: figures.PerSecond, Against: bareHandler},
		{ID: rowMergeRequestFilter, Name: "list 20 of 100,000 merge requests with the slowest filter, median at one connection", Unit: figures.Milliseconds, Bound: atMost(20)},
		{ID: rowMergeRequest, Name: "GET a merge request", Unit: figures.PerSecond, Against: bareHandler},
		{ID: rowMergeRequestDiff, Name: "the diffs of a merge request again, median at 8 connections", Unit: figures.Milliseconds, Against: bareHandler, Bound: atMost(5)},
		{ID: rowMergeRequestNotes, Name: "POST a note on a merge request", Unit: figures.PerSecond, Against: bareHandler,
			Bound: &figures.Bound{Of: figures.Ours, AtLeast: 1500}},
		{ID: rowMerge, Name: "merge of a merge request", Unit: figures.Milliseconds, Against: "git merge-tree, commit-tree, update-ref",
			Bound: &figures.Bound{Of: figures.Difference, AtMost: 15}},
	}
}

// mergeRequests is a testbed with a project whose branches can be merged, and one that has many merge requests.
type mergeRequests struct {
	*rest
	client *gitclient.Client
	// merged is the project with branches, and listed the one with many merge requests.
	merged, listed *v1alpha1.Project
	labels         []*v1alpha1.Label
}

func (b *bench) measureMergeRequests(ctx context.Context) error {
	return b.with(ctx, "merge-requests", func(ctx context.Context, t *testbed.Testbed) error {
		r, err := b.newREST(t)
		if err != nil {
			return err
		}
		m := &mergeRequests{rest: r}
		if m.client, err = b.client(t); err != nil {
			return err
		}
		if err := m.populate(ctx); err != nil {
			return err
		}
		return b.measureParts(ctx,
			group{[]string{rowMerge}, m.measureMerge},
			group{[]string{rowMergeRequest, rowMergeRequestDiff}, m.measureOne},
			group{[]string{rowMergeRequestList, rowMergeRequestFilter}, m.measureLists},
			group{[]string{rowMergeRequestNotes}, m.measureNotes},
		)
	})
}

// populate creates the projects and the many merge requests.
func (m *mergeRequests) populate(ctx context.Context) error {
	if err := m.introduce(ctx); err != nil {
		return err
	}
	made, err := newDirectory(m.bench.directory, "merge-requests-history")
	if err != nil {
		return err
	}
	if _, err := m.client.Run(ctx, made, nil, "init", "--quiet", "--bare", "--initial-branch=main"); err != nil {
		return err
	}
	if _, err := m.client.Run(ctx, made, features(mergeRounds+1), "fast-import", "--quiet"); err != nil {
		return err
	}
	m.merged, m.listed = newProject(restNamespace, "merged", fileURL(made)), newProject(restNamespace, "listed", "")
	m.labels = labelsOf(restNamespace, m.listed.Name, mergeChoices)
	if err := m.Create(ctx, m.merged, m.listed); err != nil {
		return err
	}
	if err := each(ctx, m.load, m.labels, create); err != nil {
		return err
	}
	if err := m.AwaitQuiet(ctx, "label", mergeChoices); err != nil {
		return err
	}
	for n, l := range m.labels {
		if err := m.Client().Get(ctx, client.ObjectKeyFromObject(l), m.labels[n]); err != nil {
			return err
		}
	}
	if !m.bench.wants(rowMergeRequestList, rowMergeRequestFilter, rowMergeRequestNotes) {
		return nil
	}
	m.bench.say("storing %d merge requests", manyMergeRequests)
	return m.store(ctx)
}

// features returns a history for "git fast-import" of main with many files, of branches that each add some, and of their target branches.
func features(number int) *bytes.Buffer {
	var stream bytes.Buffer
	commit := func(branch, from string) {
		fmt.Fprintf(&stream, "commit refs/heads/%s\ncommitter Ann Author <ann@example.com> 1800000000 +0000\ndata 7\nChange\n\n%s", branch, from)
	}
	file := func(path, content string) {
		fmt.Fprintf(&stream, "M 100644 inline %s\ndata %d\n%s\n", path, len(content), content)
	}
	commit("main", "")
	for n := range 1000 {
		file(fmt.Sprintf("directory-%02d/file-%d.txt", n%50, n), fmt.Sprintf("File %d\n", n))
	}
	for n := range number {
		fmt.Fprintf(&stream, "reset refs/heads/%s\nfrom refs/heads/main\n\n", release(n))
		commit(feature(n), "from refs/heads/main\n")
		for part := range 5 {
			file(fmt.Sprintf("directory-%02d/feature-%d-%d.txt", part, n, part), strings.Repeat(fmt.Sprintf("Line of feature %d\n", n), 20))
		}
	}
	return &stream
}

func feature(n int) string { return fmt.Sprintf("feature/%d", n) }

// release returns the target branch of a feature. Each has its own one, so that a merge does not make the server check the other merge requests.
func release(n int) string { return fmt.Sprintf("release/%d", n) }

// store puts the many merge requests into the activity database, while Forgeplane is stopped.
func (m *mergeRequests) store(ctx context.Context) (err error) {
	var users v1alpha1.UserList
	if err := errors.Join(m.Client().List(ctx, &users), m.Client().Get(ctx, client.ObjectKeyFromObject(m.listed), m.listed)); err != nil {
		return err
	}
	if err := m.StopForgeplane(); err != nil {
		return err
	}
	s, err := activity.Open(ctx, m.ActivityDatabase(), clock.RealClock{})
	if err != nil {
		return err
	}
	in := database.Subject{Kind: database.KindProject, ID: m.listed.Spec.ID, UID: m.listed.UID}
	user := func(n int) database.User {
		u := users.Items[n%len(users.Items)]
		return database.User{ID: u.RESTID(), UID: u.UID}
	}
	milestones := make([]milestone.Milestone, mergeChoices)
	for n := range milestones {
		milestones[n] = milestone.Milestone{In: in, Title: fmt.Sprintf("1.%d", n), State: milestone.Active}
		err = errors.Join(err, s.Milestones.Create(ctx, &milestones[n]))
	}
	for first := 0; first < manyMergeRequests && err == nil; first += mergeRequestBatch {
		err = s.Database.Atomically(ctx, "storing merge requests", func(ctx context.Context, _ bun.IDB) error {
			for n := first; n < first+mergeRequestBatch; n++ {
				if err := m.storeOne(ctx, s, m.nth(n, in, user, milestones), n); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := errors.Join(err, s.Database.Close()); err != nil {
		return err
	}
	if err := m.StartForgeplane(ctx); err != nil {
		return err
	}
	return errors.Join(m.AwaitServing(ctx), m.AwaitQuiet(ctx, "project", 0))
}

// nth returns one of the many merge requests, which differ in everything that filters select.
func (m *mergeRequests) nth(n int, in database.Subject, user func(int) database.User, milestones []milestone.Milestone) mergerequest.MergeRequest {
	r := mergerequest.MergeRequest{
		In: in, Source: in, SourceBranch: fmt.Sprintf("topic-%d", n), TargetBranch: fmt.Sprintf("release-%d", n%mergeChoices),
		Title: fmt.Sprintf("Change number %d of the sorting algorithm", n), Description: strings.Repeat("It replaces the former one. ", 10),
		Author: user(n),
	}
	if n%2 == 0 {
		r.MilestoneID = milestones[n/7%mergeChoices].ID
	}
	if n%4 != 0 {
		r.Assignees = []database.User{user(n / 2)}
	}
	if n%2 == 1 {
		r.Reviewers = []database.User{user(n / 3)}
	}
	if n%3 == 0 {
		l := m.labels[n%mergeChoices]
		r.Labels = []mergerequest.Label{{ID: l.Spec.ID, UID: l.UID}}
	}
	return r
}

// storeOne stores a merge request: most are merged, and some are approved or have a reaction.
func (m *mergeRequests) storeOne(ctx context.Context, s activity.Stores, r mergerequest.MergeRequest, n int) error {
	if err := s.MergeRequests.Create(ctx, &r); err != nil {
		return err
	}
	if n%5 == 0 {
		if _, err := s.MergeRequests.Approve(ctx, r.ID, r.Author); err != nil {
			return err
		}
	}
	if n%10 == 1 {
		if err := s.Reactions.Add(ctx, &reaction.Reaction{In: r.In, To: r.Item(), Name: "thumbsup", User: r.Author}); err != nil {
			return err
		}
	}
	if n%10 == 0 {
		return nil
	}
	_, err := s.MergeRequests.Update(ctx, r.In.UID, r.IID, func(r *mergerequest.MergeRequest) error {
		r.State = mergerequest.Merged
		return nil
	})
	return err
}

// filters are lists of merge requests with each filter. The last change of most merge requests is their creation.
func (m *mergeRequests) filters() map[string]string {
	now := time.Now().UTC().Format(time.RFC3339)
	all := map[string]string{
		"state": "state=opened", "scope": "scope=assigned_to_me", "author": "author_username=" + restUser, "assignee": "assignee_username=" + restUser,
		"any assignee": "assignee_id=Any", "reviewer": "reviewer_username=" + restUser, "no reviewer": "reviewer_id=None", "label": "labels=area::0003",
		"no label": "labels=None", "milestone": "milestone=1.3", "no milestone": "milestone=None", "approved by": "approved_by_ids=Any", "approvers": "approver_ids=None",
		"reaction": "my_reaction_emoji=thumbsup", "iids": "iids[]=7&iids[]=99000", "source branch": "source_branch=topic-77777",
		"target branch": "target_branch=release-3", "draft": "wip=yes", "search": "search=number%2055555", "rare search": "search=nothing%20like%20this",
		"common search": "search=algorithm", "search in title": "search=77777&in=title", "created after": "created_after=" + now, "created before": "created_before=" + now,
		"updated after": "updated_after=" + now, "updated before": "updated_before=" + now, "environment": "environment=production",
		"ordered by title": "order_by=title&sort=asc", "ordered by update": "order_by=updated_at", "last page": "page=4999", "simple": "view=simple",
	}
	for name, filter := range map[string]string{
		"labels": "area::0003", "milestone": "1.3", "author_username": restUser, "assignee_username": restUser, "reviewer_username": restUser,
		"my_reaction_emoji": "thumbsup",
	} {
		all["not "+name] = fmt.Sprintf("not[%s]=%s", name, filter)
	}
	return all
}

// measureLists counts lists, and measures how long those with filters take.
func (m *mergeRequests) measureLists(ctx context.Context) error {
	list := fmt.Sprintf("/projects/%d/merge_requests?per_page=20", m.listed.Spec.ID)
	if m.bench.wants(rowMergeRequestList) {
		if err := m.measureRate(ctx, question{row: rowMergeRequestList, path: list}); err != nil {
			return err
		}
	}
	if !m.bench.wants(rowMergeRequestFilter) {
		return nil
	}
	slowest, name := 0.0, ""
	for filter, query := range m.filters() {
		request, err := m.request(ctx, m.URL()+"/api/v4"+list+"&"+query)
		if err != nil {
			return err
		}
		result, err := traffic.Run(ctx, traffic.Plain(request), 1, filterTime)
		if err != nil {
			return fmt.Errorf("%s: %w", filter, err)
		}
		half := milliseconds(result.Quantile(0.5))
		m.bench.say("merge requests with the filter %q: %.1f ms", filter, half)
		if half > slowest {
			slowest, name = half, filter
		}
	}
	m.bench.describe(rowMergeRequestFilter, name)
	m.bench.record(rowMergeRequestFilter, []float64{slowest}, nil)
	return nil
}

// create creates a merge request of a branch with a feature, and returns its path.
func (m *mergeRequests) create(ctx context.Context, n int) (path string, err error) {
	all := fmt.Sprintf("/projects/%d/merge_requests", m.merged.Spec.ID)
	text, err := m.send(ctx, http.MethodPost, all,
		fmt.Sprintf("title=Feature&target_branch=%s&source_branch=%s", release(n), feature(n)), http.StatusCreated)
	var made struct{ IID int64 }
	if err == nil {
		err = json.Unmarshal(text, &made)
	}
	return fmt.Sprintf("%s/%d", all, made.IID), err
}

// measureOne counts reads of one merge request, and of its diffs.
func (m *mergeRequests) measureOne(ctx context.Context) error {
	path, err := m.create(ctx, mergeRounds)
	if err != nil {
		return err
	}
	return m.measureRates(ctx, []question{{row: rowMergeRequest, path: path}, {row: "", half: rowMergeRequestDiff, path: path + "/diffs"}})
}

// measureMerge merges a different branch in each round, and the same one by hand in a copy of the repository.
func (m *mergeRequests) measureMerge(ctx context.Context) error {
	paths := make([]string, mergeRounds)
	for n := range paths {
		var err error
		if paths[n], err = m.create(ctx, n); err != nil {
			return err
		}
	}
	copied := filepath.Join(m.bench.directory, "merged-by-hand.git")
	if err := os.CopyFS(copied, os.DirFS(m.RepositoryDir(m.merged))); err != nil {
		return fmt.Errorf("copying a repository: %w", err)
	}
	ours := func(round int) (float64, error) {
		if err := m.await(ctx, paths[round]); err != nil {
			return 0, err
		}
		begun := time.Now()
		_, err := m.send(ctx, http.MethodPut, paths[round]+"/merge", "", http.StatusOK)
		return milliseconds(time.Since(begun)), err
	}
	hand := func(round int) (float64, error) {
		begun := time.Now()
		tree, err := m.client.Run(ctx, copied, nil, "merge-tree", "--write-tree", release(round), feature(round))
		if err != nil {
			return 0, err
		}
		commit, err := m.client.Run(ctx, copied, nil, "commit-tree", "-p", release(round), "-p", feature(round), "-m", "Merge", tree)
		if err != nil {
			return 0, err
		}
		_, err = m.client.Run(ctx, copied, nil, "update-ref", "refs/heads/"+release(round), commit)
		return milliseconds(time.Since(begun)), err
	}
	o, r, err := alternate(exactly(mergeRounds), ours, hand)
	m.bench.record(rowMerge, o, r)
	return err
}

// await waits until a merge request is mergeable, as users do before they merge.
func (m *mergeRequests) await(ctx context.Context, path string) error {
	for {
		text, err := m.get(ctx, path)
		if err != nil || strings.Contains(string(text), `"detailed_merge_status":"mergeable"`) {
			return err
		}
		if pause(ctx, 20*time.Millisecond); ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// measureNotes counts the notes that clients write.
func (m *mergeRequests) measureNotes(ctx context.Context) error {
	var next atomic.Int64
	// Each connection writes notes on another merge request, because one takes a limited number.
	return m.compareWrites(ctx, rowMergeRequestNotes, func(server string) traffic.Dial {
		return func(ctx context.Context) (traffic.Connection, error) {
			url := fmt.Sprintf("%s/api/v4/projects/%d/merge_requests/%d/notes", server, m.listed.Spec.ID, next.Add(1))
			request, err := m.form(ctx, http.MethodPost, url, "body=Looks+good+to+me,+apart+from+the+names.")
			if err != nil {
				return nil, err
			}
			return traffic.Plain(request)(ctx)
		}
	})
}
