package labels_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	. "github.com/forgeplane/forgeplane/apiserver/v4/labels"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/issue"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/subscription"
)

// subscribers maps labels to the users who are subscribed to them.
type subscribers map[database.Subject]sets.Set[database.User]

func (s subscribers) Subscribe(_ context.Context, user database.User, to database.Subject) (bool, error) {
	if s[to].Has(user) {
		return false, nil
	}
	if s[to] == nil {
		s[to] = sets.Set[database.User]{}
	}
	s[to].Insert(user)
	return true, nil
}

func (s subscribers) Unsubscribe(_ context.Context, user database.User, from database.Subject) (bool, error) {
	was := s[from].Has(user)
	s[from].Delete(user)
	return was, nil
}

func (s subscribers) Subscribed(_ context.Context, user database.User, kind string) (sets.Set[types.UID], error) {
	to := sets.Set[types.UID]{}
	for label, users := range s {
		if kind == subscription.KindLabel && users.Has(user) {
			to.Insert(label.UID)
		}
	}
	return to, nil
}

func (s subscribers) Move(_ context.Context, from, to database.Subject) error {
	if from != to {
		s[to] = s[to].Union(s[from])
		delete(s, from)
	}
	return nil
}

func (s subscribers) Remove(_ context.Context, of database.Subject) error {
	delete(s, of)
	return nil
}

// forge is a forge with the public project acme/sub/web and the private project acme/sub/secret. Web has the labels bug and docs, its
// group has the label urgent, and the group above has the label legal.
type forge struct {
	*familytest.Forge
	subscribers subscribers
}

// subscribe subscribes users to the oldest label with an id.
func (f forge) subscribe(t *testing.T, label int64, users ...int64) {
	t.Helper()
	for _, id := range users {
		u, err := f.Catalog.User(t.Context(), v1alpha1.Reference{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = f.subscribers.Subscribe(t.Context(), database.User{ID: id, UID: u.UID}, f.subject(t, label))
	}
}

// subscribed returns the users who are subscribed to the oldest label with an id.
func (f forge) subscribed(t *testing.T, label int64) (ids []int64) {
	t.Helper()
	for u := range f.subscribers[f.subject(t, label)] {
		ids = append(ids, u.ID)
	}
	return ids
}

func (f forge) subject(t *testing.T, label int64) database.Subject {
	t.Helper()
	found, err := catalog.AllWithID[*v1alpha1.Label](t.Context(), f.Catalog, label)
	if err != nil || len(found) == 0 {
		t.Fatalf("there is no label %d: %v", label, err)
	}
	oldest := slices.MinFunc(found, func(a, b *v1alpha1.Label) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return database.Subject{Kind: subscription.KindLabel, ID: label, UID: oldest.UID}
}

func declared(name, title string, id int64, of v1alpha1.LabelSpec) *v1alpha1.Label {
	of.ID, of.Title = id, title
	if of.Color == "" {
		of.Color = "#FF0000"
	}
	return &v1alpha1.Label{ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: name}, Spec: of}
}

func ofProject(name string) v1alpha1.LabelSpec {
	return v1alpha1.LabelSpec{ProjectRef: &v1alpha1.Reference{Name: name}}
}

func ofGroup(name string) v1alpha1.LabelSpec {
	return v1alpha1.LabelSpec{GroupRef: &v1alpha1.Reference{Name: name}}
}

func newForge(t *testing.T, more ...client.Object) forge {
	t.Helper()
	bug, urgent := ofProject("web"), ofGroup("sub")
	bug.Description, bug.Priority, bug.Color = "Something is **wrong**", ptr.To[int32](0), "white"
	urgent.Color = "#abc"
	web := familytest.Project("acme", "web", 20, "sub", v1alpha1.VisibilityPublic)
	web.Spec.LabelPriorities = []v1alpha1.LabelPriority{{Title: "legal", Priority: 7}, {Title: "bug", Priority: 9}}
	f := familytest.New(t, append([]client.Object{
		familytest.User("root", 1, familytest.Admin), familytest.User("mary", 2), familytest.User("rita", 3),
		familytest.User("gus", 4), familytest.User("otto", 5), familytest.User("pete", 6),
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic), familytest.Group("acme", "sub", 11, "acme", v1alpha1.VisibilityPublic),
		web, familytest.Project("acme", "secret", 21, "sub", v1alpha1.VisibilityPrivate),
		familytest.InGroup("acme", "acme", "mary", v1alpha1.RoleMaintainer), familytest.InGroup("acme", "sub", "rita", v1alpha1.RoleReporter),
		familytest.InGroup("acme", "acme", "gus", v1alpha1.RoleGuest), familytest.InProject("acme", "web", "pete", v1alpha1.RoleReporter),
		declared("bug", "bug", 30, bug), declared("docs", "docs", 31, ofProject("web")),
		declared("urgent", "urgent", 32, urgent), declared("legal", "legal", 33, ofGroup("acme")),
	}, more...)...)
	all := forge{Forge: f, subscribers: subscribers{}}
	f.Writer = f.WriterReading(applied{f.Client})
	f.Activity = familytest.Activity(t, f.Clock)
	f.Activity.Subscriptions = all.subscribers
	f.Serve(New(f.Kit).Table())
	return all
}

// names lists the names of the labels of web.
func (f forge) names(t *testing.T, query string) (all []string) {
	t.Helper()
	for _, l := range familytest.Decode[[]Label](t, f.As("mary", "GET /projects/20/labels"+query, "")) {
		all = append(all, l.Name)
	}
	return all
}

// there returns the specs of all label objects by the names of the objects.
func (f forge) there(t *testing.T) map[string]v1alpha1.LabelSpec {
	t.Helper()
	var l v1alpha1.LabelList
	if err := f.Client.List(t.Context(), &l); err != nil {
		t.Fatal(err)
	}
	all := map[string]v1alpha1.LabelSpec{}
	for _, o := range l.Items {
		all[o.Name] = o.Spec
	}
	return all
}

func (f forge) project(t *testing.T, id int64) database.Subject {
	t.Helper()
	p, err := catalog.ByID[*v1alpha1.Project](t.Context(), f.Catalog, id)
	if err != nil {
		t.Fatal(err)
	}
	return database.Subject{Kind: database.KindProject, ID: id, UID: p.UID}
}

// mergeRequest creates a merge request of a project with a label.
func (f forge) mergeRequest(t *testing.T, project, labeled int64) {
	t.Helper()
	in := f.project(t, project)
	m := mergerequest.MergeRequest{
		In: in, Source: in, SourceBranch: "fix", TargetBranch: "main", Title: "A change", Labels: []mergerequest.Label{{ID: labeled, UID: f.subject(t, labeled).UID}},
	}
	NewWithT(t).Expect(f.Activity.MergeRequests.Create(t.Context(), &m)).To(Succeed())
}

// issue creates an issue of a project with a label.
func (f forge) issue(t *testing.T, project, labeled int64, change func(*issue.Issue)) {
	t.Helper()
	g := NewWithT(t)
	p, err := catalog.ByID[*v1alpha1.Project](t.Context(), f.Catalog, project)
	g.Expect(err).NotTo(HaveOccurred())
	i := issue.Issue{
		In: database.Subject{Kind: database.KindProject, ID: project, UID: p.UID}, Title: "An issue", Type: "issue",
		Labels: []issue.Label{{ID: labeled, UID: f.subject(t, labeled).UID}},
	}
	change(&i)
	state := i.State
	g.Expect(f.Activity.Issues.Create(t.Context(), &i)).To(Succeed())
	_, err = f.Activity.Issues.Update(t.Context(), p.UID, i.IID, func(i *issue.Issue) error { i.State = state; return nil })
	g.Expect(err).NotTo(HaveOccurred())
}

func TestLabel_countsIssuesThatCallerSees(t *testing.T) {
	f, g := newForge(t), NewWithT(t)
	f.issue(t, 20, 32, func(i *issue.Issue) { i.State = issue.Opened })
	f.issue(t, 20, 32, func(i *issue.Issue) { i.State, i.Confidential = issue.Opened, true })
	f.issue(t, 21, 32, func(i *issue.Issue) { i.State = issue.Closed })
	for request, want := range map[string]map[string]string{
		"GET /projects/20/labels/32": {"mary": "2 0", "gus": "1 0", "otto": "1 0"},
		"GET /groups/11/labels/32":   {"mary": "2 1", "gus": "1 1", "otto": "1 0"},
	} {
		for as, counts := range want {
			l := familytest.Decode[Counts](t, f.As(as, request, ""))
			g.Expect(fmt.Sprint(l.OpenIssues, l.ClosedIssues)).To(Equal(counts), "%s as %s", request, as)
		}
	}
}

func TestLabel_countsOpenMergeRequestsThatCallerSees(t *testing.T) {
	f, g := newForge(t), NewWithT(t)
	f.mergeRequest(t, 20, 32)
	f.mergeRequest(t, 21, 32)
	for request, want := range map[string]map[string]int64{
		"GET /projects/20/labels/32": {"mary": 1, "otto": 1},
		"GET /groups/11/labels/32":   {"mary": 2, "otto": 1},
	} {
		for as, count := range want {
			g.Expect(familytest.Decode[Counts](t, f.As(as, request, "")).OpenMergeRequests).To(Equal(count), "%s as %s", request, as)
		}
	}
	g.Expect(f.As("rita", "DELETE /groups/11/labels/32", "").Code).To(Equal(204))
	_, labeled, err := f.Activity.MergeRequests.List(t.Context(), mergerequest.Query{
		Projects: []types.UID{f.project(t, 20).UID}, Conditions: []mergerequest.Condition{mergerequest.Labeled()}, Order: mergerequest.ByCreation, Page: database.Page{Limit: 1},
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(labeled).To(BeZero(), "a deleted label is removed")
}

func TestLabel_showsCountsSubscriptionAndPriority(t *testing.T) {
	f := newForge(t)
	f.issue(t, 20, 32, func(i *issue.Issue) { i.State = issue.Opened })
	f.subscribe(t, 32, 2)
	g := NewWithT(t)
	const bug = `"id":30,"name":"bug","description":"Something is **wrong**","description_html":"Something is <strong>wrong</strong>",
		"text_color":"#1F1E24","color":"#FFFFFF","subscribed":false,"priority":0,"is_project_label":true`
	const urgent = `"id":32,"name":"urgent","description":null,"description_html":"","text_color":"#1F1E24","color":"#abc",
		"subscribed":true,"priority":null,"is_project_label":false`
	got := f.As("mary", "GET /projects/20/labels?search=U", "")
	g.Expect(got.Body).To(MatchJSON(`[{` + bug + `},{` + urgent + `}]`))
	got = f.As("mary", "GET /projects/20/labels?with_counts=true&search=u", "")
	g.Expect(got.Body).To(MatchJSON(`[{` + bug + `,"open_issues_count":0,"closed_issues_count":0,"open_merge_requests_count":0},
		{` + urgent + `,"open_issues_count":1,"closed_issues_count":0,"open_merge_requests_count":0}]`))
	g.Expect(f.As("mary", "GET /projects/20/labels/bug", "").Body).To(MatchJSON(
		`{` + bug + `,"open_issues_count":0,"closed_issues_count":0,"open_merge_requests_count":0}`))
	g.Expect(familytest.Decode[Label](t, f.As("mary", "GET /projects/20/labels/legal", "")).Priority).To(HaveValue(BeEquivalentTo(7)))
	g.Expect(familytest.Decode[Label](t, f.As("rita", "GET /projects/20/labels/urgent", "")).Subscribed).To(BeFalse())
}

func TestListLabels_searchesSortsAndPages(t *testing.T) {
	of := func(title, description string, id int64) *v1alpha1.Label {
		spec := ofProject("web")
		spec.Description = description
		return declared(fmt.Sprintf("more-%d", id), title, id, spec)
	}
	f := newForge(t, of("Zebra", "", 40), of("alpha", "about BUGS", 41), of("Bug", "", 42),
		declared("younger", "bug", 43, ofProject("web")), declared("above", "docs", 44, ofGroup("acme")), declared("new", "fresh", 0, ofProject("web")),
		declared("others", "other", 45, ofProject("secret")))
	for query, want := range map[string]string{
		"":                               "alpha Bug bug docs docs legal urgent Zebra",
		"?include_ancestor_groups=false": "alpha Bug bug docs urgent Zebra",
		"?search=BUG":                    "alpha Bug bug",
		"?search=wrong":                  "bug",
		"?search=" + "%2A%2A":            "bug",
		"?search=none":                   "",
		"?per_page=2&page=2":             "bug docs",
		"?search=l&include_ancestor_groups=0&per_page=1": "alpha",
	} {
		if got := strings.Join(f.names(t, query), " "); got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
	got := f.As("mary", "GET /projects/20/labels?per_page=3", "")
	if got.Header.Get("X-Total") != "8" || !strings.Contains(got.Header.Get("Link"), "include_ancestor_groups=true&per_page=3&with_counts=false&page=2") {
		t.Errorf("got %v", got.Header)
	}
}

func TestGetLabel_findsByIDOrTitle(t *testing.T) {
	f := newForge(t, declared("number", "30", 50, ofProject("web")), declared("other-number", "1234", 51, ofProject("web")),
		declared("odd", "type::bug & more/less 100%", 52, ofProject("web")), declared("above", "docs", 53, ofGroup("acme")))
	for key, want := range map[string]int64{
		"30": 30, "bug": 30, "1234": 51, "50": 50, "docs": 31, "53": 53, "legal": 33,
		"type%3A%3Abug%20%26%20more%2Fless%20100%25": 52,
	} {
		if got := f.As("gus", "GET /projects/20/labels/"+key, ""); got.Code != 200 || familytest.Decode[Label](t, got).ID != want {
			t.Errorf("%s: got %s, want %d", key, got, want)
		}
	}
	for _, target := range []string{"Bug", "999", "9999999999999999999999", "legal?include_ancestor_groups=false", "33?include_ancestor_groups=false"} {
		if got := f.As("mary", "GET /projects/20/labels/"+target, ""); got.String() != `404 {"message":"404 Label Not Found"}` {
			t.Errorf("%s: got %s", target, got)
		}
	}
	if got := f.As("mary", "GET /projects/20/labels/urgent?include_ancestor_groups=false", ""); got.Code != 200 {
		t.Errorf("one of the group itself: got %s", got)
	}
}

func TestSubscription_isTurnedOnAndOff(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	for _, key := range []string{"bug", "30", "legal"} {
		at := "POST /projects/20/labels/" + key
		got := f.As("gus", at+"/subscribe", "")
		g.Expect(got.Code).To(Equal(201))
		g.Expect(familytest.Decode[Label](t, got).Subscribed).To(BeTrue())
		g.Expect(f.As("gus", at+"/subscribe", "").String()).To(Equal("304"))
		g.Expect(familytest.Decode[Label](t, f.As("gus", "GET /projects/20/labels/"+key, "")).Subscribed).To(BeTrue())
		g.Expect(familytest.Decode[Label](t, f.As("mary", "GET /projects/20/labels/"+key, "")).Subscribed).To(BeFalse())
		got = f.As("gus", at+"/unsubscribe", "")
		g.Expect(got.Code).To(Equal(201))
		g.Expect(familytest.Decode[Label](t, got).Subscribed).To(BeFalse())
		g.Expect(f.As("gus", at+"/unsubscribe", "").String()).To(Equal("304"))
	}
}

func TestSubscription_endsWhenLabelOrUserIsRecreated(t *testing.T) {
	for what, recreate := range map[string]func(forge){
		"label": func(f forge) { f.Recreate(&v1alpha1.Label{}, "acme/bug") },
		"user":  func(f forge) { f.Recreate(&v1alpha1.User{}, "mary") },
	} {
		t.Run(what, func(t *testing.T) {
			g := NewWithT(t)
			f := newForge(t)
			subscribed := func() bool {
				return familytest.Decode[Label](t, f.As("mary", "GET /projects/20/labels/30", "")).Subscribed
			}
			g.Expect(f.As("mary", "POST /projects/20/labels/30/subscribe", "").Code).To(Equal(201))
			g.Expect(subscribed()).To(BeTrue())
			recreate(f)
			g.Expect(subscribed()).To(BeFalse())
			g.Expect(f.As("mary", "POST /projects/20/labels/30/subscribe", "").Code).To(Equal(201), "nothing of the former one is in the way")
			g.Expect(subscribed()).To(BeTrue())
		})
	}
}

// TestCachedLabels_areForgottenWithTheFormerGroup moves the project at each point of a request, and then lists its labels
// again.
func TestCachedLabels_areForgottenWithTheFormerGroup(t *testing.T) {
	for nth := 1; ; nth++ {
		f := newForge(t)
		moved := f.During(nth, func() { f.Move("acme/web", "acme") })
		f.names(t, "")
		if !moved() {
			NewWithT(t).Expect(nth).To(BeNumerically(">", 2))
			return
		}
		NewWithT(t).Expect(f.names(t, "")).To(ConsistOf("bug", "docs", "legal"), "moved at %d", nth)
	}
}
