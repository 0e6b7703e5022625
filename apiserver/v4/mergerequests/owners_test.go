package mergerequests_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

// newOwnedWorld returns a world whose branches owned-0, owned-1 and so on have these CODEOWNERS files and need the approval of the owners.
func newOwnedWorld(t *testing.T, files ...string) gitWorld {
	t.Helper()
	c := branched(t)
	for n, file := range files {
		c.Git(t, "checkout", "--quiet", "-b", owned(n), "stable")
		c.Commit(t, "CODEOWNERS", file)
	}
	c.Git(t, "checkout", "--quiet", "-b", "takeover")
	c.Commit(t, "CODEOWNERS", "# Taken over\n* @mary\n")
	c.Git(t, "checkout", "--quiet", "topic")
	c.Commit(t, "docs/guide", "1\n")
	w := newGitWorld(t, c)
	p := protected("owned-*", 32, v1alpha1.AccessDeveloper)
	p.Spec.CodeOwnerApprovalRequired = true
	if err := w.Client.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	return w
}

// owned is the name of a branch of newOwnedWorld.
func owned(n int) string { return fmt.Sprint("owned-", n) }

// approved adds the approval of a user to a merge request whose head is up to date.
func (w gitWorld) approved(m mergerequest.MergeRequest, username string) {
	w.t.Helper()
	w.get(m) // approvals lapse with another head
	if _, err := w.Activity.MergeRequests.Approve(w.t.Context(), m.ID, w.UserRow(username)); err != nil {
		w.t.Fatal(err)
	}
}

const unowned = `422 {"message":"Branch cannot be merged"}`

func TestMerge_needsApprovalOfOwners(t *testing.T) {
	cases := []struct {
		file     string
		approved []string
		merged   bool
	}{
		{"* @mary", []string{"mary"}, true},
		{"* @MARY and @olga", []string{"mary"}, true},
		{"* @olga", []string{"mary"}, false},
		{"* @dora", []string{"dora"}, false}, // the author
		{"* @rita", []string{"rita"}, false}, // a Reporter
		{"topic @mary\n/docs/ @olga", []string{"mary"}, false},
		{"topic @mary\n/docs/ @olga", []string{"mary", "olga"}, true},
		{"[A]\n* @mary\n[B]\n* @olga", []string{"mary"}, false},
		{"[A]\n* @mary\n[B]\n* @olga", []string{"mary", "olga"}, true},
		{"[A][2]\n* @mary @olga", []string{"mary"}, false},
		{"[A][2]\n* @mary @olga", []string{"mary", "olga"}, true},
		{"^[A]\n* @olga", nil, true},
		{"* @acme", []string{"mary"}, true},
		{"* @acme/web", []string{"mary"}, false}, // a project
		{"* @@maintainer", []string{"mary"}, true},
		{"* @@maintainers", []string{"olga"}, false},
		{"* mary@forge.example", []string{"mary"}, true},
		{"* olga@forge.example", []string{"mary"}, false},
	}
	var files []string
	for _, tt := range cases {
		files = append(files, tt.file+"\n")
	}
	w := newOwnedWorld(t, files...)
	for n, tt := range cases {
		t.Run(fmt.Sprint(tt.file, tt.approved), func(t *testing.T) {
			g := NewWithT(t)
			m, was := w.request(20, "topic", owned(n)), w.head(owned(n))
			for _, name := range tt.approved {
				w.approved(m, name)
			}
			if tt.merged {
				g.Expect(w.merge("mary", m, "").Code).To(Equal(200))
				return
			}
			g.Expect(w.merge("mary", m, "").String()).To(Equal(unowned))
			g.Expect(w.head(owned(n))).To(Equal(was))
			g.Expect(w.read(m)).To(And(HaveField("State", mergerequest.Opened), HaveField("Merger", BeZero()),
				HaveField("MergeError", ContainSubstring("lack the approval of code owners"))))
		})
	}
}

func TestMerge_readsOwnersFromTargetBranch(t *testing.T) {
	g, w := NewWithT(t), newOwnedWorld(t, "* @olga\n")
	m := w.request(20, "takeover", owned(0))
	w.approved(m, "mary")
	g.Expect(w.merge("mary", m, "").String()).To(Equal(unowned))
}

// An approval does not count after its user has lost the role.
func TestMerge_needsRoleOfOwners(t *testing.T) {
	g, w := NewWithT(t), newOwnedWorld(t, "* @olga\n")
	m := w.request(20, "topic", owned(0))
	w.approved(m, "olga")
	g.Expect(w.Client.Delete(t.Context(), familytest.InGroup("acme", "acme", "olga", v1alpha1.RoleOwner))).To(Succeed())
	g.Expect(w.merge("mary", m, "").String()).To(Equal(unowned))
}

func TestMerge_needsApprovalOfOwnersWhoCommittedNothing(t *testing.T) {
	g, w := NewWithT(t), newOwnedWorld(t, "* @mary @olga\n")
	w.authored("topic", "mary")
	w.configure(func(s *v1alpha1.MergeRequests) { s.Approvals.RefuseCommitters = true })
	m := w.request(20, "topic", owned(0))
	w.approved(m, "mary")
	g.Expect(w.merge("olga", m, "").String()).To(Equal(unowned))
	w.approved(m, "olga")
	g.Expect(w.merge("olga", m, "").Code).To(Equal(200))
}
