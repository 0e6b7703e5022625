package stateevents_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/stateevents"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/epic"
	"github.com/forgeplane/forgeplane/internal/issue"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/stateevent"
)

const (
	notFound = `404 {"message":"404 Not found"}`
	noIssue  = `404 {"message":"404 Issue Not Found"}`
)

// world is a forge with the public project web (20) in the public group acme (10), in which mary is a Reporter. Issue 1, the epic and the
// merge request were closed by ann at noon and reopened by otto a minute later. Issue 2 is confidential, and was closed by ann.
type world struct {
	*familytest.Forge
	issue, epic, mergeRequest int64
}

func newWorld(t *testing.T) *world {
	t.Helper()
	g := NewWithT(t)
	w := &world{Forge: familytest.New(t,
		familytest.User("ann", 2), familytest.User("mary", 3), familytest.User("otto", 4),
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic), familytest.Project("acme", "web", 20, "acme", v1alpha1.VisibilityPublic),
		familytest.InProject("acme", "web", "mary", v1alpha1.RoleReporter),
	)}
	w.Activity = familytest.Activity(t, w.Clock)
	user := func(name string) database.User {
		u := &v1alpha1.User{}
		w.Refer(u, name)
		return database.User{ID: u.RESTID(), UID: u.UID}
	}
	project, group := &v1alpha1.Project{}, &v1alpha1.Group{}
	w.Refer(project, "acme/web")
	w.Refer(group, "acme/acme")
	web := database.Subject{Kind: database.KindProject, ID: 20, UID: project.UID}
	acme := database.Subject{Kind: database.KindGroup, ID: 10, UID: group.UID}
	e := epic.Epic{In: acme, Title: "Big", Author: user("ann")}
	g.Expect(w.Activity.Epics.Create(t.Context(), &e)).To(Succeed())
	var issues [2]issue.Issue
	for n := range issues {
		issues[n] = issue.Issue{In: web, Title: "Broken", Type: "issue", Confidential: n > 0, Author: user("ann")}
		g.Expect(w.Activity.Issues.Create(t.Context(), &issues[n])).To(Succeed())
	}
	m := mergerequest.MergeRequest{In: web, Source: web, SourceBranch: "topic", TargetBranch: "main", Title: "Mend", Author: user("ann")}
	g.Expect(w.Activity.MergeRequests.Create(t.Context(), &m)).To(Succeed())
	w.issue, w.epic, w.mergeRequest = issues[0].ID, e.ID, m.ID
	record := func(in database.Subject, of database.Item, s stateevent.State, by string, after time.Duration) {
		event := stateevent.Event{In: in, Of: of, State: s, User: user(by), Created: w.Clock.Now().Add(after)}
		g.Expect(w.Activity.StateEvents.Add(t.Context(), &event)).To(Succeed())
	}
	record(web, issues[0].Item(), stateevent.Closed, "ann", 0)
	record(web, issues[0].Item(), stateevent.Reopened, "otto", time.Minute)
	record(acme, e.Item(), stateevent.Closed, "ann", 0)
	record(acme, e.Item(), stateevent.Reopened, "otto", time.Minute)
	record(web, issues[1].Item(), stateevent.Closed, "ann", 0)
	record(web, m.Item(), stateevent.Closed, "ann", 0)
	record(web, m.Item(), stateevent.Reopened, "otto", time.Minute)
	w.Serve(stateevents.New(w.Kit).Table())
	return w
}

// paths are the events of the issue and of the epic.
func (w *world) paths() (ofIssue, ofEpic string) {
	return "/projects/20/issues/1/resource_state_events", fmt.Sprintf("/groups/10/epics/%d/resource_state_events", w.epic)
}

func TestList_showsEventsOldestFirst(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	ofIssue, ofEpic := w.paths()
	const form = `{"id":%d,"user":{"id":%d,"username":%[3]q,"name":%[3]q,"state":"active","avatar_url":null,"web_url":"https://forge.example/%[3]s"},
		"created_at":"2026-06-15T12:%02[4]d:00.000Z","resource_type":%[5]q,"resource_id":%[6]d,"state":%[7]q,"source_commit":null,"source_merge_request_id":null}`
	for path, of := range map[string]struct {
		kind      string
		id, first int64
	}{
		ofIssue: {"Issue", w.issue, 1}, ofEpic: {"Epic", w.epic, 3},
		"/projects/20/merge_requests/1/resource_state_events": {"MergeRequest", w.mergeRequest, 6},
	} {
		closed := fmt.Sprintf(form, of.first, 2, "ann", 0, of.kind, of.id, "closed")
		reopened := fmt.Sprintf(form, of.first+1, 4, "otto", 1, of.kind, of.id, "reopened")
		g.Expect(w.As("otto", "GET "+path, "").Body).To(MatchJSON("[" + closed + "," + reopened + "]"))
		second := w.As("otto", "GET "+path+"?per_page=1&page=2", "")
		g.Expect(second.Body).To(MatchJSON("[" + reopened + "]"))
		g.Expect(second.Header.Get("X-Total")).To(Equal("2"))
		g.Expect(w.As("mary", fmt.Sprintf("GET %s/%d", path, of.first), "").Body).To(MatchJSON(closed))
		for _, request := range []string{"GET " + path, fmt.Sprintf("GET %s/%d", path, of.first)} {
			g.Expect(w.As("", request, "").String()).To(Equal(`401 {"message":"401 Unauthorized"}`), request)
		}
		g.Expect(w.As("otto", "GET "+path+"/5", "").String()).To(Equal(notFound), "an event of another issue")
		g.Expect(w.As("otto", "GET "+path+"/x", "").String()).To(Equal(`400 {"error":"event_id is invalid"}`))
	}
}

func TestList_hidesItemsThatCallerDoesNotSee(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	for _, path := range []string{"/projects/20/issues/2/resource_state_events", "/projects/20/issues/2/resource_state_events/5"} {
		g.Expect(w.As("otto", "GET "+path, "").String()).To(Equal(noIssue))
		for _, as := range []string{"ann", "mary"} {
			g.Expect(w.As(as, "GET "+path, "").Code).To(Equal(http.StatusOK), as)
		}
	}
	g.Expect(w.As("otto", "GET /projects/20/issues/9/resource_state_events", "").String()).To(Equal(noIssue))
	g.Expect(w.As("otto", "GET /projects/20/merge_requests/9/resource_state_events", "").String()).To(Equal(notFound))
	g.Expect(w.As("otto", "GET /groups/10/epics/99/resource_state_events", "").String()).To(Equal(`404 {"message":"404 Epic Not Found"}`))
}

func TestList_hidesUserWhoIsGone(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	path, _ := w.paths()
	w.Recreate(&v1alpha1.User{}, "otto")
	g.Expect(familytest.Decode[[]stateevents.Event](t, w.As("mary", "GET "+path, ""))).To(HaveExactElements(
		HaveField("User", Not(BeNil())), HaveField("User", BeNil())))
	g.Expect(familytest.Decode[stateevents.Event](t, w.As("mary", "GET "+path+"/2", "")).User).To(BeNil())
}
