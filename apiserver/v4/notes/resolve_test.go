package notes

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/issue"
	"github.com/forgeplane/forgeplane/internal/note"
)

// review is an item whose discussions can be resolved.
type review struct{ item.Issue }

func (review) Resolvable() bool { return true }

// newReviews returns a forge with the review 1 of the project 20, which ann has written. touch is what a change of its notes calls.
func newReviews(t *testing.T, touch func(context.Context, int64, time.Time) error) (*familytest.Forge, *issue.Issue) {
	t.Helper()
	f := familytest.New(t,
		familytest.User("ann", 1), familytest.User("otto", 2), familytest.User("dan", 3), familytest.User("rick", 4),
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic), familytest.Project("acme", "web", 20, "acme", v1alpha1.VisibilityPublic),
		familytest.InProject("acme", "web", "dan", v1alpha1.RoleDeveloper), familytest.InProject("acme", "web", "rick", v1alpha1.RoleReporter),
	)
	f.Activity = familytest.Activity(t, f.Clock)
	on := &issue.Issue{ID: 7, IID: 1, In: database.Subject{Kind: database.KindProject, ID: 20, UID: "web"}, Author: named(t, f, "ann")}
	find := func(context.Context, auth.Subject, int64) (review, error) { return review{item.Issue{Issue: *on}}, nil }
	f.Serve(table[auth.ProjectRecord[review]](find, collection{
		Family: New(f.Kit), path: "/projects/{id}/reviews/{review_iid}", of: "a review", read: auth.ReadIssues, internal: auth.ReadConfidential,
		write: auth.CreateIssues, moderate: auth.ModerateNotes, resolve: auth.ResolveDiscussions, date: auth.OwnProject,
		touch: touch, gone: issue.ErrNotFound,
	}))
	return f, on
}

func named(t *testing.T, f *familytest.Forge, username string) database.User {
	t.Helper()
	u, err := f.Catalog.UserByUsername(t.Context(), username)
	if err != nil {
		t.Fatal(err)
	}
	return database.User{ID: u.RESTID(), UID: u.UID}
}

func TestCreate_writesNothingOnItemThatIsGone(t *testing.T) {
	g := NewWithT(t)
	f, on := newReviews(t, func(context.Context, int64, time.Time) error { return issue.ErrNotFound })
	g.Expect(f.As("otto", "POST /projects/20/reviews/1/notes", `{"body":"Why?"}`).String()).To(Equal(`404 {"message":"404 Issue Not Found"}`))
	g.Expect(f.Activity.Notes.Counts(t.Context(), issue.Kind, on.ID)).To(BeEmpty())
}

func TestDiscussion_isResolved(t *testing.T) {
	g := NewWithT(t)
	f, on := newReviews(t, func(context.Context, int64, time.Time) error { return nil })
	d := familytest.Decode[Discussion](t, f.As("otto", "POST /projects/20/reviews/1/discussions", `{"body":"Why?"}`))
	g.Expect(d.Notes).To(HaveExactElements(And(HaveField("Resolvable", true), HaveField("Resolved", false))))
	thread := " /projects/20/reviews/1/discussions/" + d.ID
	one := fmt.Sprintf("%s/notes/%d", thread, d.Notes[0].ID)
	for _, tt := range []struct {
		as string
		is int
	}{{"", 401}, {"rick", 403}, {"dan", 200}, {"otto", 200}, {"ann", 200}} {
		for _, at := range []string{thread, one} {
			resolved := func() any {
				got := familytest.Decode[Discussion](t, f.As("", "GET"+thread, ""))
				if !got.Notes[0].Resolved {
					g.Expect(got.Notes[0].ResolvedBy).To(BeNil())
					return nil
				}
				return got.Notes[0].ResolvedBy.Username
			}
			g.Expect(f.As(tt.as, "PUT"+at, `{"resolved":true}`).Code).To(Equal(tt.is), tt.as+at)
			if tt.is != 200 {
				g.Expect(resolved()).To(BeNil())
				continue
			}
			g.Expect(resolved()).To(Equal(tt.as))
			g.Expect(f.As("ann", "POST"+thread+"/notes", `{"body":"Because."}`).Body).To(ContainSubstring(`"resolved":true`))
			g.Expect(f.As(tt.as, "PUT"+at, `{"resolved":false}`).Body).To(And(ContainSubstring(`"resolved":false`), ContainSubstring(`"resolved_at":null`)))
			g.Expect(resolved()).To(BeNil())
		}
	}

	reply := familytest.Decode[Note](t, f.As("rick", "POST"+thread+"/notes", `{"body":"Done."}`))
	g.Expect(f.As("rick", fmt.Sprintf("PUT%s/notes/%d", thread, reply.ID), `{"resolved":true}`).Code).To(Equal(403), "a reply is not enough")

	on.DiscussionLocked = true
	g.Expect(f.As("otto", "PUT"+thread, `{"resolved":true}`).Code).To(Equal(403))
	g.Expect(f.As("dan", "PUT"+thread, `{"resolved":true}`).Code).To(Equal(200))
	single := note.Note{In: on.In, On: on.Item(), Author: named(t, f, "otto"), Body: "single", Individual: true}
	g.Expect(f.Activity.Notes.Create(t.Context(), &single)).To(Succeed())
	g.Expect(f.As("dan", "PUT /projects/20/reviews/1/discussions/"+single.Discussion, `{"resolved":true}`).Code).To(Equal(403), "an individual note")
}
