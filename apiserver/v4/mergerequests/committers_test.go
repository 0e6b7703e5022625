package mergerequests_test

import (
	"fmt"
	"os"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/mergerequests"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

// authored makes a user the author of the commits of a branch.
func (w gitWorld) authored(branch, username string) {
	w.t.Helper()
	var u v1alpha1.User
	w.Refer(&u, username)
	u.Spec.Email = w.web.Git(w.t, "log", "-1", "--format=%ae", branch)
	NewWithT(w.t).Expect(w.Client.Update(w.t.Context(), &u)).To(Succeed())
}

func TestApprovals_ofCommittersCanBeRefused(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	m := w.request(20, "topic", "main", func(m *mergerequest.MergeRequest) { m.ApprovalsRequired = 1 })
	w.authored("topic", "mary")
	w.approved(m, "mary")
	g.Expect(w.get(m).DetailedMergeStatus).To(Equal("mergeable"))
	w.configure(func(s *v1alpha1.MergeRequests) { s.Approvals.RefuseCommitters = true })
	g.Expect(w.get(m).DetailedMergeStatus).To(Equal("not_approved"))
	g.Expect(w.merge("mary", m, "").Code).To(Equal(405))
	const approve = "POST /projects/20/merge_requests/1/approve"
	g.Expect(w.As("mary", approve, "").String()).To(Equal(unauthorized))
	g.Expect(w.As("olga", approve, "").Code).To(Equal(201))
	g.Expect(w.merge("mary", m, "").Code).To(Equal(200))
}

// broken lets a subcommand of git fail until mended is called.
func (w gitWorld) broken(subcommand string) (mended func()) {
	w.t.Helper()
	g := NewWithT(w.t)
	whole := w.binary + ".whole"
	g.Expect(os.Rename(w.binary, whole)).To(Succeed())
	text := fmt.Sprintf("#!/bin/sh\n[ \"$1\" != %s ] || exit 1\nexec '%s' \"$@\"\n", subcommand, whole)
	g.Expect(os.WriteFile(w.binary, []byte(text), 0o755)).To(Succeed())
	return func() { g.Expect(os.Rename(whole, w.binary)).To(Succeed()) }
}

func TestApprovals_areRefusedWhileCommitsAreUnreadable(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	m := w.request(20, "topic", "main", func(m *mergerequest.MergeRequest) { m.ApprovalsRequired = 1 })
	w.configure(func(s *v1alpha1.MergeRequests) { s.Approvals.RefuseCommitters = true })
	w.approved(m, "mary")
	statuses := func() (all []string) {
		for _, m := range familytest.Decode[[]mergerequests.MergeRequest](t, w.As("rita", "GET /projects/20/merge_requests", "")) {
			all = append(all, m.DetailedMergeStatus)
		}
		return all
	}
	mended := w.broken("log")
	g.Expect(statuses()).To(Equal([]string{"not_approved"}))
	mended()
	g.Expect(statuses()).To(Equal([]string{"mergeable"}))
}

func TestApprovals_readCommitsOnce(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	w.configure(func(s *v1alpha1.MergeRequests) { s.Approvals.RefuseCommitters = true })
	m := w.request(20, "topic", "main")
	w.approved(m, "mary")
	w.approved(m, "olga")
	g.Expect(w.starts("log")).To(Equal(1))
	for range 2 {
		g.Expect(w.As("rita", "GET /projects/20/merge_requests", "").Code).To(Equal(200))
	}
	g.Expect(w.merge("dora", m, "").Code).To(Equal(200))
	g.Expect(w.starts("log")).To(Equal(1))
}

// The transaction of an approval does not wait for Git, so it must not decide about other commits than those that were read before.
func TestApprove_isRefusedIfCommitsChangeMeanwhile(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	w.configure(func(s *v1alpha1.MergeRequests) { s.Approvals.RefuseCommitters = true })
	m := w.request(20, "topic", "main")
	w.get(m)
	w.during(func() {
		w.advance("topic", "topic")
		w.get(m)
	})
	const approve = "POST /projects/20/merge_requests/1/approve"
	g.Expect(w.As("mary", approve, "").String()).To(Equal(`409 {"message":"The merge request has changed meanwhile. Please try again."}`))
	g.Expect(w.Activity.MergeRequests.Approvals(t.Context(), m.ID)).To(BeEmpty())
	g.Expect(w.As("mary", approve, "").Code).To(Equal(201))
}
