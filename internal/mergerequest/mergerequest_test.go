package mergerequest_test

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/iid"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/milestone"
	"github.com/forgeplane/forgeplane/internal/reaction"
)

var (
	noon = time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)
	web  = database.Subject{Kind: database.KindProject, ID: 20, UID: "web"}
	fork = database.Subject{Kind: database.KindProject, ID: 21, UID: "fork"}
	ann  = database.User{ID: 1, UID: "ann"}
	bob  = database.User{ID: 2, UID: "bob"}
	bug  = mergerequest.Label{ID: 9, UID: "bug"}
	docs = mergerequest.Label{ID: 10, UID: "docs"}
)

// stores are the stores of merge requests and of the rows that conditions refer to.
type stores struct {
	*mergerequest.Store
	milestones *milestone.Store
	reactions  *reaction.Store
	clock      *clocktesting.FakePassiveClock
}

func open(t *testing.T, name string) stores {
	t.Helper()
	db := databasetest.Open(t, name, iid.Migrations(), milestone.Migrations(), mergerequest.Migrations(), reaction.Migrations())
	clk := clocktesting.NewFakePassiveClock(noon)
	return stores{mergerequest.New(db, clk), milestone.New(db, clk), reaction.New(db, clk), clk}
}

// create creates a merge request, by default one by ann into the branch main of web.
func (s stores) create(t *testing.T, m mergerequest.MergeRequest) mergerequest.MergeRequest {
	t.Helper()
	if m.In.UID == "" {
		m.In = web
	}
	if m.Source.UID == "" {
		m.Source = m.In
	}
	if m.Title == "" {
		m.Title = "A change"
	}
	m.TargetBranch, m.Author = cmp.Or(m.TargetBranch, "main"), ann
	if err := s.Create(t.Context(), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestStore_keepsMergeRequest(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, s := NewWithT(t), open(t, name)
		m := s.create(t, mergerequest.MergeRequest{
			Source: fork, SourceBranch: "fix", Title: "Draft: Fix", Description: "At last", Squash: true, RemoveSourceBranch: true, AllowCollaboration: true,
			ApprovalsRequired: 2, MilestoneID: 5, Labels: []mergerequest.Label{bug, docs}, Assignees: []database.User{bob, ann}, Reviewers: []database.User{bob},
		})
		other := s.create(t, mergerequest.MergeRequest{SourceBranch: "fix"})
		g.Expect([]int64{m.IID, other.IID}).To(Equal([]int64{1, 2}))
		g.Expect(m).To(And(HaveField("State", mergerequest.Opened), HaveField("MergeStatus", mergerequest.Unchecked), HaveField("Draft", true)))
		got, err := s.Get(t.Context(), web.UID, 1)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Created).To(BeTemporally("==", noon))
		got.Created, got.Updated, m.Text = m.Created, m.Updated, "" // the text is not read
		g.Expect(got).To(Equal(m))
		g.Expect(s.WithID(t.Context(), other.ID)).To(HaveField("IID", int64(2)))
		_, err = s.Get(t.Context(), fork.UID, 1)
		g.Expect(err).To(MatchError(mergerequest.ErrNotFound))
	})
}

func TestStore_refusesSecondOpenMergeRequestOfBranches(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, s := NewWithT(t), open(t, name)
		first := s.create(t, mergerequest.MergeRequest{SourceBranch: "fix"})
		become := func(number int64, state mergerequest.State) error {
			_, err := s.Update(t.Context(), web.UID, number, func(m *mergerequest.MergeRequest) error { m.State = state; return nil })
			return err
		}
		duplicate := mergerequest.MergeRequest{In: web, Source: web, SourceBranch: "fix", TargetBranch: "main", Title: "Again", Author: bob}
		refused := func(err error) int64 {
			var e *mergerequest.DuplicateError
			if !errors.As(err, &e) {
				t.Fatal(err)
			}
			return e.IID
		}
		g.Expect(refused(s.Create(t.Context(), &duplicate))).To(Equal(first.IID))
		g.Expect(become(1, mergerequest.Locked)).To(Succeed())
		g.Expect(refused(s.Create(t.Context(), &duplicate))).To(Equal(first.IID))
		g.Expect(become(1, mergerequest.Closed)).To(Succeed())
		second := s.create(t, mergerequest.MergeRequest{SourceBranch: "fix"})
		g.Expect(second.IID).To(Equal(first.IID + 1))
		g.Expect(refused(become(1, mergerequest.Opened))).To(Equal(second.IID))
		s.create(t, mergerequest.MergeRequest{Source: fork, SourceBranch: "fix"})
	})
}

func TestCollaborations_areOpenMergeRequestsFromFork(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, s := NewWithT(t), open(t, name)
		into := func(branch string) mergerequest.Target { return mergerequest.Target{In: web, Branch: branch} }
		for _, m := range []mergerequest.MergeRequest{
			{Source: fork, SourceBranch: "fix", AllowCollaboration: true},
			{Source: fork, SourceBranch: "fix", TargetBranch: "stable", AllowCollaboration: true},
			{Source: fork, SourceBranch: "other", AllowCollaboration: true},
			{Source: fork, SourceBranch: "own"},
			{SourceBranch: "fix", AllowCollaboration: true},
		} {
			s.create(t, m)
		}
		g.Expect(s.Collaborations(t.Context(), fork.UID, "fix")).To(ConsistOf(into("main"), into("stable")))
		g.Expect(s.Collaborations(t.Context(), fork.UID, "own")).To(BeEmpty())
		g.Expect(s.Collaborations(t.Context(), fork.UID, "")).To(ConsistOf(into("main"), into("stable")))
		g.Expect(s.Collaborations(t.Context(), web.UID, "fix")).To(BeEmpty(), "it is not from a fork")
		for number := range int64(2) {
			_, err := s.Update(t.Context(), web.UID, number+1, func(m *mergerequest.MergeRequest) error { m.State = mergerequest.Closed; return nil })
			g.Expect(err).NotTo(HaveOccurred())
		}
		g.Expect(s.Collaborations(t.Context(), fork.UID, "fix")).To(BeEmpty())
		g.Expect(s.Collaborations(t.Context(), fork.UID, "")).To(ConsistOf(into("main")))
	})
}

func TestUpdate_changesMergeRequest(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, s := NewWithT(t), open(t, name)
		s.create(t, mergerequest.MergeRequest{SourceBranch: "fix", Labels: []mergerequest.Label{bug}, Assignees: []database.User{ann}, Reviewers: []database.User{ann, bob}})
		s.clock.SetTime(noon.Add(time.Hour))
		changed, err := s.Update(t.Context(), web.UID, 1, func(m *mergerequest.MergeRequest) error {
			m.Title, m.Labels, m.Assignees, m.Reviewers = "Draft: Tears", []mergerequest.Label{docs}, []database.User{bob, ann}, nil
			return nil
		})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(changed).To(And(HaveField("Text", "draft: tears\n"), HaveField("Draft", true)))
		got, err := s.Get(t.Context(), web.UID, 1)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got).To(And(HaveField("Title", "Draft: Tears"), HaveField("Labels", []mergerequest.Label{docs}), HaveField("Assignees", []database.User{bob, ann}),
			HaveField("Reviewers", BeEmpty())))
		g.Expect(got.Updated).To(BeTemporally("==", noon.Add(time.Hour)))

		refusal := errors.New("no")
		_, err = s.Update(t.Context(), web.UID, 1, func(*mergerequest.MergeRequest) error { return refusal })
		g.Expect(err).To(MatchError(refusal))
		_, err = s.Update(t.Context(), web.UID, 2, func(*mergerequest.MergeRequest) error { return nil })
		g.Expect(err).To(MatchError(mergerequest.ErrNotFound))
	})
}

func TestUpdate_opensOneOfConcurrentMergeRequests(t *testing.T) {
	g, s := NewWithT(t), open(t, databasetest.PostgreSQL(t)) // SQLite has one transaction at a time
	for range 2 {
		m := s.create(t, mergerequest.MergeRequest{SourceBranch: "topic"})
		_, err := s.Update(t.Context(), web.UID, m.IID, func(m *mergerequest.MergeRequest) error {
			m.State = mergerequest.Closed
			return nil
		})
		g.Expect(err).NotTo(HaveOccurred())
	}
	var both sync.WaitGroup
	both.Add(2)
	errs := make(chan error)
	for iid := range int64(2) {
		go func() {
			_, err := s.Update(t.Context(), web.UID, iid+1, func(m *mergerequest.MergeRequest) error {
				both.Done()
				both.Wait()
				m.State = mergerequest.Opened
				return nil
			})
			errs <- err
		}()
	}
	duplicate := func(err error) bool {
		var e *mergerequest.DuplicateError
		return errors.As(err, &e)
	}
	g.Expect([]error{<-errs, <-errs}).To(ConsistOf(BeNil(), Satisfy(duplicate)))
}

func TestDelete_removesMergeRequest(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, s := NewWithT(t), open(t, name)
		m := s.create(t, mergerequest.MergeRequest{SourceBranch: "fix", Labels: []mergerequest.Label{bug}, Reviewers: []database.User{ann}})
		g.Expect(s.Approve(t.Context(), m.ID, bob)).To(BeTrue())
		g.Expect(s.AddVersion(t.Context(), &mergerequest.Version{MergeRequestID: m.ID, Head: "h"}, "1")).To(Succeed())
		g.Expect(s.Delete(t.Context(), m.ID)).To(Succeed())
		g.Expect(s.Delete(t.Context(), m.ID)).To(MatchError(mergerequest.ErrNotFound))
		g.Expect(s.Touch(t.Context(), m.ID, noon)).To(MatchError(mergerequest.ErrNotFound))
		g.Expect(s.Approvals(t.Context(), m.ID)).To(BeEmpty())
		g.Expect(s.CountLabels(t.Context(), []types.UID{web.UID}, "bug")).To(BeEmpty())
		_, total, err := s.Versions(t.Context(), m.ID, 0, 9)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(total).To(BeZero())
		g.Expect(s.create(t, mergerequest.MergeRequest{SourceBranch: "fix"}).IID).To(Equal(int64(2)), "an iid is never used again")
	})
}

func TestVersions_areKeptInOrder(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, s := NewWithT(t), open(t, name)
		m, other := s.create(t, mergerequest.MergeRequest{SourceBranch: "fix"}), s.create(t, mergerequest.MergeRequest{SourceBranch: "other"})
		for n := range 3 {
			v := mergerequest.Version{MergeRequestID: m.ID, Head: fmt.Sprint("head", n), Base: "base", Start: "start"}
			g.Expect(s.AddVersion(t.Context(), &v, fmt.Sprint(n))).To(Succeed())
		}
		got, err := s.Get(t.Context(), web.UID, 1)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got).To(And(HaveField("Head", "head2"), HaveField("Base", "base"), HaveField("Start", "start"), HaveField("ChangesCount", "2"),
			HaveField("MergeStatus", mergerequest.Unchecked)))
		page, total, err := s.Versions(t.Context(), m.ID, 1, 2)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(total).To(Equal(3))
		g.Expect(page).To(HaveExactElements(HaveField("Head", "head1"), HaveField("Head", "head0")))
		g.Expect(s.Version(t.Context(), m.ID, page[0].ID)).To(HaveField("Head", "head1"))
		_, err = s.Version(t.Context(), other.ID, page[0].ID)
		g.Expect(err).To(MatchError(mergerequest.ErrVersionNotFound))
		g.Expect(s.AddVersion(t.Context(), &mergerequest.Version{MergeRequestID: 99}, "")).To(MatchError(mergerequest.ErrNotFound))
	})
}

func TestApprovals_lapseWithNewHead(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, s := NewWithT(t), open(t, name)
		m, other := s.create(t, mergerequest.MergeRequest{SourceBranch: "fix"}), s.create(t, mergerequest.MergeRequest{SourceBranch: "other"})
		push := func(head, start string) {
			t.Helper()
			g.Expect(s.AddVersion(t.Context(), &mergerequest.Version{MergeRequestID: m.ID, Head: head, Start: start}, "")).To(Succeed())
		}
		approvers := func(id int64) (all []database.User) {
			t.Helper()
			approvals, err := s.Approvals(t.Context(), id)
			g.Expect(err).NotTo(HaveOccurred())
			for _, a := range approvals {
				all = append(all, a.User)
			}
			return all
		}
		g.Expect(s.Approve(t.Context(), m.ID, ann)).To(BeTrue())
		push("one", "main")
		g.Expect(s.Approve(t.Context(), m.ID, ann)).To(BeFalse(), "the first head is no other one")
		s.clock.SetTime(noon.Add(time.Hour))
		g.Expect(s.Approve(t.Context(), m.ID, bob)).To(BeTrue())
		g.Expect(s.Approve(t.Context(), other.ID, bob)).To(BeTrue())
		push("one", "later")
		g.Expect(approvers(m.ID)).To(Equal([]database.User{ann, bob}), "only the target branch has changed")
		g.Expect(s.Unapprove(t.Context(), m.ID, ann)).To(BeTrue())
		g.Expect(s.Unapprove(t.Context(), m.ID, ann)).To(BeFalse())
		g.Expect(approvers(m.ID)).To(Equal([]database.User{bob}))
		push("two", "later")
		g.Expect(approvers(m.ID)).To(BeEmpty())
		g.Expect(approvers(other.ID)).To(Equal([]database.User{bob}))
	})
}

func TestFinishPushed_isRefusedWithOtherHead(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, s := NewWithT(t), open(t, name)
		was := s.create(t, mergerequest.MergeRequest{SourceBranch: "fix"})
		g.Expect(s.AddVersion(t.Context(), &mergerequest.Version{MergeRequestID: was.ID, Head: "b", Base: "a", Start: "a"}, "1")).To(Succeed())
		v := mergerequest.Version{Head: "c", Base: "a", Start: "a"}
		_, _, err := s.FinishPushed(t.Context(), was, v, "1", "c", database.User{})
		g.Expect(err).To(MatchError(mergerequest.ErrOutdated))
		now, err := s.WithID(t.Context(), was.ID)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(now).To(And(HaveField("State", mergerequest.Opened), HaveField("Head", "b")))
	})
}

func TestApprovals_lapseWithNewTargetBranch(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, s := NewWithT(t), open(t, name)
		m := s.create(t, mergerequest.MergeRequest{SourceBranch: "fix", TargetBranch: "main"})
		g.Expect(s.Approve(t.Context(), m.ID, bob)).To(BeTrue())
		change := func(change func(*mergerequest.MergeRequest)) {
			t.Helper()
			_, err := s.Update(t.Context(), web.UID, m.IID, func(m *mergerequest.MergeRequest) error { change(m); return nil })
			g.Expect(err).NotTo(HaveOccurred())
		}
		change(func(m *mergerequest.MergeRequest) { m.Title = "Other" })
		g.Expect(s.Approvals(t.Context(), m.ID)).To(HaveLen(1))
		change(func(m *mergerequest.MergeRequest) { m.TargetBranch = "stable" })
		g.Expect(s.Approvals(t.Context(), m.ID)).To(BeEmpty())
	})
}

func TestCountLabels_countsOpenMergeRequests(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, s := NewWithT(t), open(t, name)
		for n, m := range []mergerequest.MergeRequest{
			{Labels: []mergerequest.Label{bug, docs}}, {Labels: []mergerequest.Label{bug}}, {Labels: []mergerequest.Label{bug}}, {In: fork, Labels: []mergerequest.Label{bug}},
		} {
			m.SourceBranch = fmt.Sprint("b", n)
			s.create(t, m)
		}
		_, err := s.Update(t.Context(), web.UID, 2, func(m *mergerequest.MergeRequest) error { m.State = mergerequest.Merged; return nil })
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.CountLabels(t.Context(), []types.UID{web.UID}, "bug", "docs", "none")).To(Equal(map[types.UID]int64{"bug": 2, "docs": 1}))
		g.Expect(s.CountLabels(t.Context(), nil, "bug")).To(BeEmpty())
		g.Expect(s.CountLabels(t.Context(), []types.UID{web.UID})).To(BeEmpty())
	})
}

func TestForgetMilestone_removesItFromItsMergeRequests(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, s := NewWithT(t), open(t, name)
		for n, id := range []int64{5, 6} {
			s.create(t, mergerequest.MergeRequest{SourceBranch: fmt.Sprint("b", n), MilestoneID: id})
		}
		g.Expect(s.ForgetMilestone(t.Context(), 5)).To(Succeed())
		g.Expect(s.Get(t.Context(), web.UID, 1)).To(HaveField("MilestoneID", BeZero()))
		g.Expect(s.Get(t.Context(), web.UID, 2)).To(HaveField("MilestoneID", int64(6)))
	})
}
