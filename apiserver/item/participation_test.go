package item_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/issue"
)

func TestParticipation_findsNothingToFollowOnceItemIsGone(t *testing.T) {
	g, w := NewWithT(t), familytest.New(t,
		familytest.User("ann", 3), familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic), familytest.Project("acme", "web", 20, "acme", v1alpha1.VisibilityPublic))
	w.Activity = familytest.Activity(t, w.Clock)
	kind := item.Finder{Stores: w.Activity}.Issues()
	kind.Find = func(_ context.Context, s auth.Subject, iid int64) (item.Issue, error) { // and it is deleted after that
		return item.Issue{Issue: issue.Issue{ID: 7, IID: iid, In: item.Place(s.Scope)}}, nil
	}
	w.Serve(item.Participation[item.Issue, endpoint.None]{
		Kit: &w.Kit, Kind: kind, Involved: "the author", Followers: w.Activity.Issues,
		Done: func(context.Context, auth.ProjectRecord[item.Issue], string) (none endpoint.None, err error) {
			return none, nil
		},
	}.Table())
	g.Expect(w.As("ann", "POST /projects/20/issues/1/subscribe", "").String()).To(Equal(`404 {"message":"404 Issue Not Found"}`))
}
