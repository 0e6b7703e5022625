package mergerequests_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/mergerequests"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/milestone"
	"github.com/forgeplane/forgeplane/internal/note"
)

// writeWorld is a forge with the public project acme/web (20), its fork fans/web (22) and its private fork acme/secret (21), the unrelated project
// fans/other (23) and the label bug of acme/web. Mary owns the group acme (10), dev is a Developer of it, gus a Guest, and otto owns the group fans.
type writeWorld struct {
	*familytest.Forge
	t *testing.T
}

func newWriteWorld(t *testing.T) writeWorld {
	t.Helper()
	w := writeWorld{familytest.New(t,
		familytest.User("root", 1, familytest.Admin), familytest.User("mary", 2), familytest.User("dev", 3), familytest.User("gus", 4), familytest.User("otto", 5),
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic), familytest.Group("fans", "fans", 11, "", v1alpha1.VisibilityPublic),
		familytest.Project("acme", "web", 20, "acme", v1alpha1.VisibilityPublic), familytest.Project("acme", "secret", 21, "acme", v1alpha1.VisibilityPrivate),
		familytest.Project("fans", "web", 22, "fans", v1alpha1.VisibilityPublic), familytest.Project("fans", "other", 23, "fans", v1alpha1.VisibilityPublic),
		&v1alpha1.Label{
			ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "bug"},
			Spec:       v1alpha1.LabelSpec{ID: 30, Title: "bug", Color: "red", ProjectRef: &v1alpha1.Reference{Name: "web"}},
		},
		familytest.InGroup("acme", "acme", "mary", v1alpha1.RoleOwner), familytest.InGroup("acme", "acme", "dev", v1alpha1.RoleDeveloper),
		familytest.InGroup("acme", "acme", "gus", v1alpha1.RoleGuest), familytest.InGroup("fans", "fans", "otto", v1alpha1.RoleOwner),
	), t}
	for _, name := range []string{"acme/secret", "fans/web"} {
		fork := &v1alpha1.Project{}
		w.Refer(fork, name)
		fork.Spec.ForkOf = &v1alpha1.ForkOf{ProjectRef: w.Refer(&v1alpha1.Project{}, "acme/web")}
		if err := w.Client.Update(t.Context(), fork); err != nil {
			t.Fatal(err)
		}
	}
	w.Activity = familytest.Activity(t, w.Clock)
	w.Serve(mergerequests.New(w.Kit).Table())
	return w
}

// asked is a merge request as the tests see it.
type asked struct {
	ID, IID            int64
	ProjectID          int64  `json:"project_id"`
	SourceProjectID    int64  `json:"source_project_id"`
	SourceBranch       string `json:"source_branch"`
	TargetBranch       string `json:"target_branch"`
	Title, Description string
	State              string
	Draft              bool
	Labels             []string
	Author             *askedUser
	Assignees          []askedUser
	Reviewers          []askedUser
	Milestone          *struct{ Title string }
	Locked             *bool      `json:"discussion_locked"`
	Removes            bool       `json:"force_remove_source_branch"`
	Should             *bool      `json:"should_remove_source_branch"`
	Collaborates       *bool      `json:"allow_collaboration"`
	Pushes             *bool      `json:"allow_maintainer_to_push"`
	ClosedBy           *askedUser `json:"closed_by"`
	ClosedAt           *string    `json:"closed_at"`
	Squash             bool
	Subscribed         bool
	First              bool `json:"first_contribution"`
}

type askedUser struct{ Username string }

// done sends a request that succeeds.
func (w writeWorld) done(as, request, body string) asked {
	w.t.Helper()
	w.Clock.SetTime(w.Clock.Now().Add(time.Minute))
	a := w.As(as, request, body)
	if a.Code >= 300 {
		w.t.Fatalf("%s %s as %s: %s", request, body, as, a)
	}
	return familytest.Decode[asked](w.t, a)
}

const (
	toWeb  = "/projects/20/merge_requests"
	oneWeb = toWeb + "/1"
)

// ask creates a merge request of a branch into main of acme/web.
func (w writeWorld) ask(branch string) asked {
	w.t.Helper()
	return w.done("dev", "POST "+toWeb, fmt.Sprintf(`{"title":"Search","source_branch":%q,"target_branch":"main"}`, branch))
}

// fromFork creates a merge request of otto's fork into main of acme/web.
func (w writeWorld) fromFork(more string) asked {
	w.t.Helper()
	return w.done("otto", "POST /projects/22/merge_requests", `{"title":"Search","source_branch":"search","target_branch":"main","target_project_id":20`+more+`}`)
}

func (w writeWorld) milestone(project, title string) int64 {
	w.t.Helper()
	p := &v1alpha1.Project{}
	w.Refer(p, project)
	m := milestone.Milestone{In: database.Subject{Kind: database.KindProject, ID: p.Spec.ID, UID: p.UID}, Title: title, State: milestone.Active}
	if err := w.Activity.Milestones.Create(w.t.Context(), &m); err != nil {
		w.t.Fatal(err)
	}
	return m.ID
}

func TestCreate_takesAllAttributes(t *testing.T) {
	g, w := NewWithT(t), newWriteWorld(t)
	a := w.As("dev", "POST "+toWeb, fmt.Sprintf(`{"title":" Draft: Search\nfast ","source_branch":"search","target_branch":"main","description":"- [x] index",
		"labels":"new,bug","assignee_ids":[4,3,99],"reviewer_ids":[2],"milestone_id":%d,"remove_source_branch":true,"squash":true,"approvals_before_merge":2}`,
		w.milestone("acme/web", "1.0")))
	g.Expect(a.Code).To(Equal(201), a.Body)
	m := familytest.Decode[asked](t, a)
	g.Expect(m).To(And(HaveField("IID", int64(1)), HaveField("ProjectID", int64(20)), HaveField("SourceProjectID", int64(20)), HaveField("State", "opened"),
		HaveField("Title", "Draft: Search fast"), HaveField("Draft", true), HaveField("Labels", []string{"bug", "new"}), HaveField("Author.Username", "dev"),
		HaveField("Assignees", []askedUser{{"gus"}, {"dev"}}), HaveField("Reviewers", []askedUser{{"mary"}}), HaveField("Milestone.Title", "1.0"),
		HaveField("Removes", true), HaveField("Should", BeNil()), HaveField("Squash", true), HaveField("Collaborates", BeNil()), HaveField("Locked", BeNil())))
	g.Expect(w.As("dev", "GET "+oneWeb+"?include_diverged_commits_count=true", "").Body).To(MatchJSON(a.Body))
}

func TestCreate_targetsProjectOfSameNetwork(t *testing.T) {
	g, w := NewWithT(t), newWriteWorld(t)
	g.Expect(w.fromFork(`,"labels":"bug","assignee_ids":[3],"allow_maintainer_to_push":true`)).To(And(HaveField("ProjectID", int64(20)),
		HaveField("SourceProjectID", int64(22)), HaveField("Labels", BeEmpty()), HaveField("Assignees", BeEmpty()),
		HaveField("Collaborates", HaveValue(BeTrue())), HaveField("Pushes", HaveValue(BeTrue()))))
	const body = `{"title":"Search","source_branch":"search","target_branch":"main","target_project_id":%d}`
	for _, tt := range []struct {
		as     string
		target int
		want   string
	}{
		{"otto", 20, `409 {"message":["Another open merge request already exists for this source branch: !1"]}`},
		{"otto", 22, `422 {"message":["You can't use same project/branch for source and target"]}`},
		{"otto", 23, `422 {"message":["The source project is not a fork of the target project"]}`},
		{"otto", 21, `404 {"message":"404 Project Not Found"}`},
		{"otto", 99, `404 {"message":"404 Project Not Found"}`},
		{"dev", 20, `403 {"message":"403 Forbidden"}`},
		{"", 20, `401 {"message":"401 Unauthorized"}`},
	} {
		name := "search"
		if tt.target == 22 {
			name = "main"
		}
		got := w.As(tt.as, "POST /projects/22/merge_requests", fmt.Sprintf(strings.Replace(body, `"search"`, fmt.Sprintf("%q", name), 1), tt.target)).String()
		g.Expect(got).To(Equal(tt.want), "%+v", tt)
	}
	g.Expect(w.As("gus", "POST "+toWeb, fmt.Sprintf(body, 20)).Code).To(Equal(403))
}

func TestWrite_refusesMalformedAttributes(t *testing.T) {
	w := newWriteWorld(t)
	w.ask("search")
	w.ask("other")
	const put, post = "PUT " + oneWeb, "POST " + toWeb
	const all = `assignee_id, assignee_ids, reviewer_ids, description, labels, add_labels, remove_labels, milestone_id, remove_source_branch, ` +
		`allow_collaboration, allow_maintainer_to_push, squash, target_branch, title, state_event, discussion_locked are missing, at least one parameter must be provided`
	branches := `,"source_branch":"a","target_branch":"b"}`
	for _, tt := range []struct{ request, body, want string }{
		{post, `{"title":"a"}`, `400 {"error":"source_branch is missing, target_branch is missing"}`},
		{post, `{}`, `400 {"error":"title is missing, source_branch is missing, target_branch is missing"}`},
		{post, `{"title":" "` + branches, `400 {"message":{"title":["can't be blank"]}}`},
		{post, fmt.Sprintf(`{"title":%q`, strings.Repeat("ä", 256)) + branches, `400 {"message":{"title":["is too long (maximum is 255 characters)"]}}`},
		{post, fmt.Sprintf(`{"title":"a","description":%q`, strings.Repeat("a", 1<<20+1)) + branches,
			`400 {"message":{"description":["is too long (1048577). The maximum size is 1048576."]}}`},
		{post, `{"title":"a","source_branch":"","target_branch":"a..b"}`, `400 {"message":{"source_branch":["can't be blank"],"target_branch":["is invalid"]}}`},
		{post, `{"title":"a","reviewer_ids":"` + strings.Repeat("3,", 201) + `"` + branches, `400 {"message":{"reviewer_ids":["are too many (maximum is 200)"]}}`},
		{put, `{"title":" "}`, `400 {"error":"title is empty"}`},
		{put, `{"state_event":"merge"}`, `400 {"error":"state_event does not have a valid value"}`},
		{put, `{"target_branch":"search"}`, `422 {"message":["You can't use same project/branch for source and target"]}`},
		{put, ``, `400 {"error":"` + all + `"}`},
		{put, `{"unknown":1}`, `400 {"error":"` + all + `"}`},
		{"PUT " + toWeb + "/9", `{"title":"a"}`, `404 {"message":"404 Not found"}`},
	} {
		if got := w.As("dev", tt.request, tt.body).String(); got != tt.want {
			t.Errorf("%s %.60s\ngot  %s\nwant %s", tt.request, tt.body, got, tt.want)
		}
	}
}

func TestUpdate_changesAllAttributes(t *testing.T) {
	g, w := NewWithT(t), newWriteWorld(t)
	w.ask("search")
	put := func(body string) asked { t.Helper(); return w.done("dev", "PUT "+oneWeb, body) }
	g.Expect(put(`{"title":"[draft] Find","description":"Text","target_branch":"next","labels":["bug"],"assignee_ids":[4,3,3],"reviewer_ids":"2,4",
		"discussion_locked":true,"squash":true,"remove_source_branch":true}`)).To(And(HaveField("Title", "[draft] Find"), HaveField("Draft", true),
		HaveField("Description", "Text"), HaveField("TargetBranch", "next"), HaveField("Labels", []string{"bug"}), HaveField("Assignees", []askedUser{{"gus"}, {"dev"}}),
		HaveField("Reviewers", []askedUser{{"mary"}, {"gus"}}), HaveField("Locked", HaveValue(BeTrue())), HaveField("Squash", true), HaveField("Removes", true)))
	g.Expect(put(`{"add_labels":"new","remove_labels":"bug,none"}`).Labels).To(Equal([]string{"new"}))
	g.Expect(put(fmt.Sprintf(`{"milestone_id":%d}`, w.milestone("acme/web", "1.0"))).Milestone.Title).To(Equal("1.0"))
	g.Expect(put(fmt.Sprintf(`{"milestone_id":%d}`, w.milestone("fans/web", "2.0"))).Milestone).To(BeNil(), "of another project")
	g.Expect(put(`{"labels":"","assignee_ids":[0],"reviewer_ids":[0],"description":null,"title":"Find","squash":false}`)).To(And(HaveField("Labels", BeEmpty()),
		HaveField("Assignees", BeEmpty()), HaveField("Reviewers", BeEmpty()), HaveField("Description", ""), HaveField("Draft", false), HaveField("Squash", false)))
	g.Expect(put(`{"assignee_id":3,"reviewer_ids":[3]}`).Assignees).To(Equal([]askedUser{{"dev"}}))
	g.Expect(put(`{"assignee_id":0,"reviewer_ids":[]}`)).To(And(HaveField("Assignees", BeEmpty()), HaveField("Reviewers", BeEmpty())))
}

func TestUpdate_isLimitedForAuthorsAndAssignees(t *testing.T) {
	g, w := NewWithT(t), newWriteWorld(t)
	w.fromFork("")
	g.Expect(w.As("gus", "PUT "+oneWeb, `{"title":"a"}`).String()).To(Equal(`403 {"message":"403 Forbidden"}`))
	w.done("dev", "PUT "+oneWeb, `{"assignee_ids":[4]}`)
	const body = `{"title":"By %s","labels":["bug"],"assignee_ids":[],"reviewer_ids":[2],"discussion_locked":true,"allow_collaboration":true,"remove_source_branch":true}`
	for as, pushes := range map[string]bool{"gus": false, "otto": true} {
		w.done("otto", "PUT "+oneWeb, `{"allow_collaboration":false,"remove_source_branch":false}`)
		g.Expect(w.done(as, "PUT "+oneWeb, fmt.Sprintf(body, as))).To(And(HaveField("Title", "By "+as), HaveField("Labels", BeEmpty()),
			HaveField("Assignees", []askedUser{{"gus"}}), HaveField("Reviewers", BeEmpty()), HaveField("Locked", BeNil()),
			HaveField("Collaborates", HaveValue(Equal(pushes))), HaveField("Removes", pushes)), as)
	}
	w.done("otto", "PUT "+oneWeb, `{"allow_collaboration":false}`)
	g.Expect(w.done("dev", "PUT "+oneWeb, `{"allow_collaboration":true}`).Collaborates).To(HaveValue(BeFalse()), "a Developer of the target cannot open the fork")
}

func TestUpdate_recordsChangeOfState(t *testing.T) {
	g, w := NewWithT(t), newWriteWorld(t)
	m := w.ask("search")
	put := func(event string) asked {
		t.Helper()
		return w.done("dev", "PUT "+oneWeb, fmt.Sprintf(`{"state_event":%q}`, event))
	}
	g.Expect(put("reopen").State).To(Equal("opened"))
	g.Expect(put("close")).To(And(HaveField("State", "closed"), HaveField("ClosedBy.Username", "dev"), HaveField("ClosedAt", HaveValue(Not(BeEmpty())))))
	put("close")
	g.Expect(put("reopen")).To(And(HaveField("State", "opened"), HaveField("ClosedBy", BeNil()), HaveField("ClosedAt", BeNil())))
	on := database.Item{Kind: mergerequest.Kind, ID: m.ID}
	states, _, err := w.Activity.StateEvents.List(t.Context(), on, 0, 10)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(states).To(HaveExactElements(HaveField("State", BeEquivalentTo("closed")), HaveField("State", BeEquivalentTo("reopened"))))
	notes, _, err := w.Activity.Notes.List(t.Context(), on, note.Query{Ascending: true, Limit: 10})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(notes).To(HaveExactElements(HaveField("Body", "closed"), HaveField("Body", "reopened")))
	put("close")
	g.Expect(w.ask("search").IID).To(Equal(int64(2)))
	g.Expect(w.As("dev", "PUT "+oneWeb, `{"state_event":"reopen"}`).String()).To(Equal(
		`409 {"message":["Another open merge request already exists for this source branch: !2"]}`))
}

func TestUpdate_keepsStateAndTargetOfMerged(t *testing.T) {
	g, w := NewWithT(t), newWriteWorld(t)
	w.ask("search")
	w.merge(1)
	g.Expect(w.done("dev", "PUT "+oneWeb, `{"state_event":"reopen","target_branch":"next","title":"Found"}`)).To(And(
		HaveField("State", "merged"), HaveField("TargetBranch", "main"), HaveField("Title", "Found")))
	g.Expect(w.done("dev", "PUT "+oneWeb, `{"state_event":"close"}`).State).To(Equal("merged"))
}

// merge marks a merge request of acme/web as merged.
func (w writeWorld) merge(iid int64) {
	w.t.Helper()
	_, err := w.Activity.MergeRequests.Update(w.t.Context(), w.ProjectRow(20).UID, iid, func(m *mergerequest.MergeRequest) error {
		m.State = mergerequest.Merged
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestDelete_isRefusedDuringMerge(t *testing.T) {
	g, w := NewWithT(t), newWriteWorld(t)
	row, err := w.Activity.MergeRequests.WithID(t.Context(), w.ask("search").ID)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(w.Activity.MergeRequests.Lock(t.Context(), row, mergerequest.Plan{Commit: "planned"})).To(Succeed())
	g.Expect(w.As("mary", "DELETE "+oneWeb, "").String()).To(Equal(
		`409 {"message":"The merge request is being merged. Please try again after the merge."}`))
	g.Expect(w.Activity.MergeRequests.Unlock(t.Context(), row.ID, "planned", "")).To(Succeed())
	g.Expect(w.As("mary", "DELETE "+oneWeb, "").String()).To(Equal("204"))
}

func TestDelete_removesWhatBelongsToMergeRequest(t *testing.T) {
	g, w := NewWithT(t), newWriteWorld(t)
	m := w.ask("search")
	w.done("dev", "PUT "+oneWeb, `{"state_event":"close"}`)
	w.Header = http.Header{"If-Unmodified-Since": {"Mon, 15 Jun 2026 12:00:00 GMT"}}
	g.Expect(w.As("mary", "DELETE "+oneWeb, "").String()).To(Equal(`412 {"message":"412 Precondition Failed"}`))
	w.Header = nil
	g.Expect(w.As("dev", "DELETE "+oneWeb, "").String()).To(Equal(`403 {"message":"403 Forbidden"}`))
	g.Expect(w.As("mary", "DELETE "+oneWeb, "").String()).To(Equal("204"))
	g.Expect(w.As("mary", "DELETE "+oneWeb, "").String()).To(Equal(`404 {"message":"404 Not found"}`))
	on := database.Item{Kind: mergerequest.Kind, ID: m.ID}
	_, notes, err := w.Activity.Notes.List(t.Context(), on, note.Query{Limit: 1})
	g.Expect([]any{notes, err}).To(Equal([]any{0, nil}))
	_, events, err := w.Activity.StateEvents.List(t.Context(), on, 0, 1)
	g.Expect([]any{events, err}).To(Equal([]any{0, nil}))
}

func TestCreate_limitsMergeRequestsFromForksOfOutsiders(t *testing.T) {
	g, w := NewWithT(t), newWriteWorld(t)
	const create = `{"title":"x","source_branch":"b%d","target_branch":"main","target_project_id":20}`
	for n := range 50 {
		g.Expect(w.As("otto", "POST /projects/22/merge_requests", fmt.Sprintf(create, n)).Code).To(Equal(201))
	}
	refused := HavePrefix(`422 {"message":["You already have 50 open merge requests from forks into this project.`)
	g.Expect(w.As("otto", "POST /projects/22/merge_requests", fmt.Sprintf(create, 50)).String()).To(refused)
	g.Expect(w.As("otto", "PUT "+oneWeb, `{"state_event":"close"}`).Code).To(Equal(200))
	g.Expect(w.As("otto", "POST /projects/22/merge_requests", fmt.Sprintf(create, 50)).Code).To(Equal(201))
	g.Expect(w.As("otto", "PUT "+oneWeb, `{"state_event":"reopen"}`).String()).To(refused)
	g.Expect(w.As("dev", "PUT "+oneWeb, `{"state_event":"reopen"}`).Code).To(Equal(200), "a Developer decides about the project")
	g.Expect(w.As("root", "POST /projects/22/merge_requests", fmt.Sprintf(create, 51)).Code).To(Equal(201), "another author")
}
