package revision_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/internal/ci/config"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/iid"
	"github.com/forgeplane/forgeplane/internal/issue"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/pipeline"
	"github.com/forgeplane/forgeplane/internal/reaction"
	"github.com/forgeplane/forgeplane/internal/revision"
)

var (
	web  = database.Subject{Kind: database.KindProject, ID: 20, UID: "web"}
	shop = database.Subject{Kind: database.KindProject, ID: 21, UID: "shop"}
	bug  = database.Label{ID: 9, UID: "bug"}
)

type stores struct {
	*revision.Store
	db            *database.DB
	issues        *issue.Store
	mergeRequests *mergerequest.Store
	pipelines     *pipeline.Store
	reactions     *reaction.Store
}

func open(t *testing.T, name string) stores {
	t.Helper()
	db := databasetest.Open(t, name, iid.Migrations(), issue.Migrations(), job.Migrations(), mergerequest.Migrations(), pipeline.Migrations(), reaction.Migrations(),
		revision.Migrations())
	c := clock.RealClock{}
	return stores{revision.New(db), db, issue.New(db, c), mergerequest.New(db, c), pipeline.New(db, c), reaction.New(db, c)}
}

func (s stores) issue(t *testing.T, in database.Subject) issue.Issue {
	t.Helper()
	i := issue.Issue{In: in, Title: "An issue", Labels: []issue.Label{bug}}
	if err := s.issues.Create(t.Context(), &i); err != nil {
		t.Fatal(err)
	}
	return i
}

func (s stores) mergeRequest(t *testing.T, branch string) mergerequest.MergeRequest {
	t.Helper()
	m := mergerequest.MergeRequest{In: web, Source: web, SourceBranch: branch, TargetBranch: "main", Title: "A change"}
	if err := s.mergeRequests.Create(t.Context(), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// pipeline creates a pipeline with a job.
func (s stores) pipeline(t *testing.T) pipeline.Pipeline {
	t.Helper()
	p := pipeline.Pipeline{In: web, Ref: "main", SHA: "1", Source: "push"}
	j := &pipeline.Job{Name: "test", When: "on_success", Needs: []pipeline.Need{}, Tags: []string{}, Spec: &config.Job{}}
	if err := s.pipelines.Create(t.Context(), &p, []*pipeline.Job{j}, nil); err != nil {
		t.Fatal(err)
	}
	return p
}

// since returns the changes of a kind after a revision, as words, and the new revision.
func (s stores) since(t *testing.T, kind string, after int64) (all []string, now int64) {
	t.Helper()
	changes, now, err := s.Since(t.Context(), kind, after, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		word := c.State
		switch {
		case c.Deleted:
			word = "deleted"
		case c.Created > after:
			word = "new"
		}
		all = append(all, fmt.Sprintf("%s %d %s", c.Project, c.IID, word))
	}
	return all, now
}

func TestSince_returnsEachChangedItemOnce(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g := NewWithT(t)
		s := open(t, name)
		first, second := s.issue(t, web), s.issue(t, web)
		m := s.mergeRequest(t, "feature")
		all, now := s.since(t, issue.Kind, 1)
		g.Expect(all).To(Equal([]string{"web 1 new", "web 2 new"}))

		_, err := s.issues.Update(t.Context(), web.UID, 1, func(i *issue.Issue) error {
			i.State = issue.Closed
			return nil
		})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.issues.Delete(t.Context(), second.ID)).To(Succeed())
		g.Expect(s.issues.Touch(t.Context(), first.ID, first.Updated)).To(Succeed())
		all, now = s.since(t, issue.Kind, now)
		g.Expect(all).To(Equal([]string{"web 2 deleted", "web 1 closed"}))
		all, _ = s.since(t, issue.Kind, now)
		g.Expect(all).To(BeEmpty())

		g.Expect(s.mergeRequests.Lock(t.Context(), m, mergerequest.Plan{Commit: "c"})).To(Succeed())
		all, _ = s.since(t, mergerequest.Kind, now)
		g.Expect(all).To(Equal([]string{"web 1 locked"}))
	})
}

func TestSince_seesPipelinesAndJobs(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g := NewWithT(t)
		s := open(t, name)
		p := s.pipeline(t)
		all, _ := s.since(t, pipeline.Kind, 1)
		g.Expect(all).To(Equal([]string{"web 1 new"}))
		_, now := s.since(t, pipeline.JobKind, 1)
		_, err := s.pipelines.Advance(t.Context(), p.ID)
		g.Expect(err).NotTo(HaveOccurred())
		all, _ = s.since(t, pipeline.Kind, now)
		g.Expect(all).To(Equal([]string{"web 1 pending"}))
		all, now = s.since(t, pipeline.JobKind, now)
		g.Expect(all).To(Equal([]string{"web 1 pending"}))
		_, err = databasetest.SQL(t, name).ExecContext(t.Context(), "UPDATE pipeline_jobs SET contacted_at = '2000-01-01T00:00:00Z'")
		g.Expect(err).NotTo(HaveOccurred())
		all, now = s.since(t, pipeline.JobKind, now)
		g.Expect(all).To(BeEmpty(), "a part of a log")
		g.Expect(s.pipelines.Delete(t.Context(), p.ID)).To(Succeed())
		all, _ = s.since(t, pipeline.JobKind, now)
		g.Expect(all).To(Equal([]string{"web 1 deleted"}))
	})
}

func TestSince_returnsNothingOfTransactionThatFailed(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g := NewWithT(t)
		s := open(t, name)
		s.issue(t, web)
		_, now := s.since(t, issue.Kind, 1)
		stop := errors.New("stop")
		err := s.db.Atomically(t.Context(), "closing an issue", func(ctx context.Context, _ bun.IDB) error {
			_, err := s.issues.Update(ctx, web.UID, 1, func(i *issue.Issue) error {
				i.State = issue.Closed
				return nil
			})
			return errors.Join(err, stop)
		})
		g.Expect(err).To(MatchError(stop))
		all, after := s.since(t, issue.Kind, now)
		g.Expect(all).To(BeEmpty())
		g.Expect(after).To(Equal(now))
	})
}

func TestLatest_isOfAProject(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g := NewWithT(t)
		s := open(t, name)
		latest := func(of database.Subject) int64 {
			t.Helper()
			revision, err := s.Latest(t.Context(), issue.Kind, of.UID)
			g.Expect(err).NotTo(HaveOccurred())
			return revision
		}
		g.Expect(latest(web)).To(BeZero())
		s.issue(t, web)
		first := latest(web)
		g.Expect(first).To(BeNumerically(">", 0))
		g.Expect(latest(shop)).To(BeZero())
		s.issue(t, shop)
		g.Expect(latest(web)).To(Equal(first))
		g.Expect(latest(shop)).To(BeNumerically(">", first))
		s.issue(t, web)
		g.Expect(latest(web)).To(BeNumerically(">", latest(shop)))
	})
}

// A column that the triggers did not compare would hide its changes.
func TestSince_seesChangeOfEachColumn(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g := NewWithT(t)
		s := open(t, name)
		g.Expect(s.issues.Create(t.Context(), &issue.Issue{In: web, Title: "An issue"})).To(Succeed())
		s.mergeRequest(t, "feature")
		s.pipeline(t)
		// Clients do not see these columns, or they follow from others.
		hidden := sets.New("before_sha", "tag", "protected", "yaml_errors", "on_new_commit", "on_job_failure", "upstream_job_id", "root_id", "schedule_id", "merge_request_id",
			"source_branch", "awaited", "origin", "created_at", "subject_kind", "subject_id", "pipeline_id", "position", "name", "stage", "stage_index", "bridge", "external", "description", "target_url", "coverage", "run_when",
			"start_in", "excused", "interruptible", "resource_group", "environment", "environment_tier", "has_needs", "needs", "tags", "spec", "runner_id", "token_digest", "contacted_at", "eraser_id", "eraser_uid",
			"queued_at", "erased_at", "scheduled_at")
		db := databasetest.SQL(t, name)
		for table, kind := range map[string]string{
			"issues": issue.Kind, "merge_requests": mergerequest.Kind, "pipelines": pipeline.Kind, "pipeline_jobs": pipeline.JobKind,
		} {
			rows, err := db.QueryContext(t.Context(), "SELECT * FROM "+table+" LIMIT 0")
			g.Expect(err).NotTo(HaveOccurred())
			columns, err := rows.ColumnTypes()
			g.Expect(errors.Join(err, rows.Err(), rows.Close())).NotTo(HaveOccurred())
			for _, c := range columns {
				if c.Name() == "id" || strings.HasPrefix(table, "pipeline") && hidden.Has(c.Name()) {
					continue // it never changes
				}
				value := "'2000-01-01T00:00:00Z'"
				switch c.DatabaseTypeName() {
				case "TEXT":
					value = "COALESCE(" + c.Name() + ", '') || 'x'"
				case "INTEGER", "INT8":
					value = "COALESCE(" + c.Name() + ", 0) + 1"
				case "BOOLEAN", "BOOL":
					value = "NOT COALESCE(" + c.Name() + ", FALSE)"
				}
				_, now := s.since(t, kind, 1)
				_, err := db.ExecContext(t.Context(), fmt.Sprintf("UPDATE %s SET %s = %s", table, c.Name(), value))
				g.Expect(err).NotTo(HaveOccurred(), c.Name())
				all, _ := s.since(t, kind, now)
				g.Expect(all).NotTo(BeEmpty(), c.Name())
			}
		}
	})
}

func TestSince_returnsNothingOfWriteThatChangesNothing(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g := NewWithT(t)
		s := open(t, name)
		s.issue(t, web)
		m := s.mergeRequest(t, "feature")
		check := mergerequest.Check{Head: "h", Base: "b", Target: "t", Changes: "1", Status: mergerequest.CanBeMerged}
		m, err := s.mergeRequests.RecordCheck(t.Context(), m, check)
		g.Expect(err).NotTo(HaveOccurred())
		_, now := s.since(t, mergerequest.Kind, 1)
		_, err = s.mergeRequests.RecordCheck(t.Context(), m, check)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = databasetest.SQL(t, name).ExecContext(t.Context(), "UPDATE issues SET updated_at = updated_at")
		g.Expect(err).NotTo(HaveOccurred())
		all, after := s.since(t, mergerequest.Kind, now)
		g.Expect(all).To(BeEmpty())
		g.Expect(after).To(Equal(now))
	})
}

// PostgreSQL keeps each version of the row of the revision until the transaction ends, and passes them all to find the last one.
func TestTransaction_writesRevisionSeldom(t *testing.T) {
	g, name := NewWithT(t), databasetest.PostgreSQL(t)
	s := open(t, name)
	for range 20 {
		s.issue(t, web)
	}
	_, now := s.since(t, issue.Kind, 1)
	tx, err := databasetest.SQL(t, name).BeginTx(t.Context(), nil)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = tx.ExecContext(t.Context(), "SET CONSTRAINTS ALL IMMEDIATE; UPDATE issues SET milestone_id = 1; UPDATE issues SET milestone_id = 2 WHERE iid = 3")
	g.Expect(err).NotTo(HaveOccurred())
	var updates int
	g.Expect(tx.QueryRowContext(t.Context(), "SELECT n_tup_upd FROM pg_stat_xact_user_tables WHERE relid = 'item_revision'::regclass").Scan(&updates)).To(Succeed())
	g.Expect(updates).To(Equal(6), "for 1, 2, 4, 8, 16 and 32 revisions")
	g.Expect(tx.Commit()).To(Succeed())
	all, now := s.since(t, issue.Kind, now)
	g.Expect(all).To(HaveLen(20))
	g.Expect(all[19]).To(Equal("web 3 opened"), "the last change")
	s.issue(t, shop)
	all, _ = s.since(t, issue.Kind, now)
	g.Expect(all).To(Equal([]string{"shop 1 new"}))
}

func TestSince_seesLabelsThatGo(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g := NewWithT(t)
		s := open(t, name)
		s.issue(t, web)
		_, now := s.since(t, issue.Kind, 1)
		g.Expect(s.issues.Labels().Forget(t.Context(), bug)).To(Succeed())
		all, _ := s.since(t, issue.Kind, now)
		g.Expect(all).To(Equal([]string{"web 1 opened"}))
	})
}

func TestSince_seesReactionsAndApprovals(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g := NewWithT(t)
		s := open(t, name)
		i, m := s.issue(t, web), s.mergeRequest(t, "feature")
		_, now := s.since(t, issue.Kind, 1)
		expect := func(err error, issues, mergeRequests []string) {
			t.Helper()
			g.Expect(err).NotTo(HaveOccurred())
			all, _ := s.since(t, issue.Kind, now)
			g.Expect(all).To(Equal(issues))
			all, now = s.since(t, mergerequest.Kind, now)
			g.Expect(all).To(Equal(mergeRequests))
		}
		mary := database.User{ID: 1, UID: "mary"}
		for _, to := range []database.Item{i.Item(), m.Item(), {Kind: "note", ID: m.ID}} {
			changed := map[string][]string{to.Kind: {"web 1 opened"}}
			r := reaction.Reaction{In: web, To: to, Name: "rocket", User: mary}
			expect(s.reactions.Add(t.Context(), &r), changed[issue.Kind], changed[mergerequest.Kind])
			expect(s.reactions.Delete(t.Context(), r.ID), changed[issue.Kind], changed[mergerequest.Kind])
		}
		_, err := s.mergeRequests.Approve(t.Context(), m.ID, mary)
		expect(err, nil, []string{"web 1 opened"})
		_, err = s.mergeRequests.Unapprove(t.Context(), m.ID, mary)
		expect(err, nil, []string{"web 1 opened"})
	})
}

func TestSince_seesItemsThatMoveToAnotherProject(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g := NewWithT(t)
		s := open(t, name)
		s.issue(t, web)
		s.issue(t, web)
		s.issue(t, shop)
		_, now := s.since(t, issue.Kind, 1)
		numbers := iid.Subjects(s.db, iid.Items{issue.Kind: (*issue.Issue)(nil), mergerequest.Kind: (*mergerequest.MergeRequest)(nil)})
		g.Expect(numbers.Move(t.Context(), web, shop)).To(Succeed())
		g.Expect(s.issues.Subjects().Move(t.Context(), web, shop)).To(Succeed())
		all, _ := s.since(t, issue.Kind, now)
		g.Expect(all).To(ConsistOf("web 1 deleted", "web 2 deleted", "shop 1 new", "shop 2 new", "shop 3 new"))
	})
}

func TestSince_expires(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g := NewWithT(t)
		s := open(t, name)
		gone := s.issue(t, web)
		g.Expect(s.issues.Delete(t.Context(), gone.ID)).To(Succeed())
		_, now := s.since(t, issue.Kind, 1)
		_, _, err := s.Since(t.Context(), issue.Kind, now+1, 100)
		g.Expect(err).To(MatchError(revision.ErrExpired))

		_, err = databasetest.SQL(t, name).ExecContext(t.Context(), "UPDATE item_revision SET last = last + 100001")
		g.Expect(err).NotTo(HaveOccurred())
		_, _, err = s.Since(t.Context(), issue.Kind, now, 100)
		g.Expect(err).To(MatchError(revision.ErrExpired))
		s.issue(t, web)
		all, _ := s.since(t, issue.Kind, now+100)
		g.Expect(all).To(Equal([]string{"web 2 new"}), "the deleted issue is forgotten")
	})
}

// A reader follows the changes while several writers work. In the end it must know the state of every issue.
func TestSince_missesNoChangeOfConcurrentWriters(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g := NewWithT(t)
		s := open(t, name)
		const writers, rounds = 4, 15
		var all sync.WaitGroup
		for range writers {
			all.Go(func() {
				for range rounds {
					i := issue.Issue{In: web, Title: "An issue"}
					g.Expect(s.issues.Create(t.Context(), &i)).To(Succeed())
					_, err := s.issues.Update(t.Context(), web.UID, i.IID, func(i *issue.Issue) error {
						i.State = issue.Closed
						return nil
					})
					g.Expect(err).NotTo(HaveOccurred())
				}
			})
		}
		ended := make(chan struct{})
		go func() {
			all.Wait()
			close(ended)
		}()
		states := map[int64]string{}
		after := int64(1)
		for last := false; !last; {
			select {
			case <-ended:
				last = true // after one more look
			default:
			}
			for more := true; more; {
				changes, now, err := s.Since(t.Context(), issue.Kind, after, 7)
				g.Expect(err).NotTo(HaveOccurred())
				for _, c := range changes {
					states[c.IID] = c.State
				}
				more, after = len(changes) == 7, now
			}
		}
		g.Expect(states).To(HaveLen(writers * rounds))
		g.Expect(states).To(HaveEach("closed"))
	})
}

func TestList_pages(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g := NewWithT(t)
		s := open(t, name)
		for _, in := range []database.Subject{web, shop, web, {Kind: "project", ID: 22, UID: "app"}} {
			s.issue(t, in)
		}
		gone := s.issue(t, web)
		g.Expect(s.issues.Delete(t.Context(), gone.ID)).To(Succeed())
		_, err := s.issues.Update(t.Context(), shop.UID, 1, func(i *issue.Issue) error {
			i.State = issue.Closed
			return nil
		})
		g.Expect(err).NotTo(HaveOccurred())
		_, now := s.since(t, issue.Kind, 1)

		list := func(q revision.Query) (all []string) {
			q.Kind, q.Limit = issue.Kind, 2
			for {
				page, last, err := s.List(t.Context(), q)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(last).To(Equal(now))
				for _, i := range page {
					all = append(all, fmt.Sprintf("%s %d", i.Project, i.IID))
				}
				if len(page) < q.Limit {
					return all
				}
				q.After = page[q.Limit-1]
			}
		}
		g.Expect(list(revision.Query{})).To(Equal([]string{"app 1", "shop 1", "web 1", "web 2"}))
		g.Expect(list(revision.Query{Projects: []types.UID{"web", "shop"}})).To(Equal([]string{"shop 1", "web 1", "web 2"}))
		g.Expect(list(revision.Query{Projects: []types.UID{}})).To(BeEmpty())
		g.Expect(list(revision.Query{IID: 2})).To(Equal([]string{"web 2"}))
		g.Expect(list(revision.Query{State: "closed"})).To(Equal([]string{"shop 1"}))
		many := []types.UID{"web"}
		for n := range 2000 {
			many = append(many, types.UID(fmt.Sprintf("other-%d", n)))
		}
		slices.Reverse(many)
		g.Expect(list(revision.Query{Projects: many})).To(Equal([]string{"web 1", "web 2"}), "projects are read in batches")
	})
}
