package activity_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/uptrace/bun"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"

	activityv1 "github.com/forgeplane/forgeplane/api/activity/v1alpha1"
	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/activity"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/ci/config"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/issue"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/milestone"
	"github.com/forgeplane/forgeplane/internal/pipeline"
	"github.com/forgeplane/forgeplane/test/patience"
)

// storage has the methods that the generic API server calls.
type storage interface {
	rest.Getter
	rest.Lister
	rest.Watcher
}

// world has the projects web and api-1 in the namespace acme and the project web in the namespace zoo. The embedded storage holds the four merge
// requests.
type world struct {
	storage
	issues, pipelines, jobs storage
	store                   *mergerequest.Store
	forge                   *familytest.Forge
	mary                    database.User
}

func newWorld(t *testing.T) world {
	t.Helper()
	api := familytest.Project("acme", "api-1", 21, "acme", v1alpha1.VisibilityPrivate)
	api.Status.FullPath = "acme/api-1"
	f := familytest.New(t,
		familytest.User("mary", 2),
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPrivate), familytest.Group("zoo", "zoo", 11, "", v1alpha1.VisibilityPrivate),
		familytest.Group("acme", "lab", 12, "", v1alpha1.VisibilityPrivate),
		familytest.Project("acme", "web", 20, "acme", v1alpha1.VisibilityPrivate), api,
		familytest.Project("zoo", "web", 22, "zoo", v1alpha1.VisibilityPrivate))
	f.Activity = familytest.Activity(t, f.Clock)
	group := activity.Group(activity.Options{
		Catalog: f.Catalog, Stores: f.Activity, WebURL: f.WebURL, Outdated: func(context.Context) (bool, error) { return false, nil },
	})
	mary, err := f.Catalog.User(t.Context(), v1alpha1.Reference{Name: "mary"})
	if err != nil {
		t.Fatal(err)
	}
	served := group.Info().VersionedResourcesStorageMap["v1alpha1"]
	w := world{served["mergerequests"].(storage), served["issues"].(storage), served["pipelines"].(storage), served["jobs"].(storage), f.Activity.MergeRequests, f, item.User(mary)}
	for _, of := range []struct{ namespace, project, branch string }{
		{"acme", "web", "one"}, {"acme", "web", "two"}, {"acme", "api-1", "one"}, {"zoo", "web", "one"},
	} {
		in := w.project(t, of.namespace, of.project)
		m := mergerequest.MergeRequest{In: in, Source: in, SourceBranch: of.branch, TargetBranch: "main", Title: "Draft: " + of.branch, Author: w.mary, Reviewers: []database.User{w.mary}}
		if err := w.store.Create(t.Context(), &m); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// project returns a project as the subject of rows.
func (w world) project(t *testing.T, namespace, name string) database.Subject {
	t.Helper()
	p, err := w.forge.Catalog.Project(t.Context(), namespace, v1alpha1.Reference{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return database.Subject{Kind: database.KindProject, ID: p.RESTID(), UID: p.UID}
}

func in(ctx context.Context, namespace string) context.Context {
	return request.WithNamespace(ctx, namespace)
}

func (w world) list(t *testing.T, namespace string, o metainternal.ListOptions) *activityv1.MergeRequestList {
	t.Helper()
	list, err := w.List(in(t.Context(), namespace), &o)
	if err != nil {
		t.Fatal(err)
	}
	return list.(*activityv1.MergeRequestList)
}

func names(list *activityv1.MergeRequestList) (all []string) {
	for _, m := range list.Items {
		all = append(all, m.Namespace+"/"+m.Name)
	}
	return all
}

func (w world) close(t *testing.T, id int64) {
	t.Helper()
	m, err := w.store.WithID(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Update(t.Context(), m.In.UID, m.IID, func(m *mergerequest.MergeRequest) error {
		m.State, m.ClosedAt = mergerequest.Closed, time.Now()
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func TestGet_showsMergeRequest(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	obj, err := w.Get(in(t.Context(), "acme"), "api-1-1", nil)
	g.Expect(err).NotTo(HaveOccurred())
	m := obj.(*activityv1.MergeRequest)
	g.Expect(m.Spec.ItemSpec).To(Equal(activityv1.ItemSpec{
		ProjectRef: activityv1.ProjectReference{Name: "api-1"}, Title: "Draft: one", Author: "mary", Labels: []string{},
	}))
	g.Expect(m.Spec.Reviewers).To(Equal([]string{"mary"}))
	g.Expect([]string{m.Spec.SourceProject, m.Spec.SourceBranch, m.Spec.TargetBranch}).To(Equal([]string{"acme/api-1", "one", "main"}))
	g.Expect([]any{m.Spec.Draft, m.Status.IID, m.Status.State, m.Status.MergeStatus}).To(Equal([]any{true, int64(1), "opened", "unchecked"}))
	g.Expect(m.Status.WebURL).To(Equal(familytest.WebURL + "/acme/api-1/-/merge_requests/1"))
	g.Expect(m.CreationTimestamp.Time).To(BeTemporally("==", m.Status.CreatedAt.Time))
	for _, name := range []string{"api-1", "api-1-2", "api-1-01", "web", "-1", "web-0"} {
		_, err := w.Get(in(t.Context(), "acme"), name, nil)
		g.Expect(err).To(Satisfy(apierrors.IsNotFound), name)
	}
}

func TestGet_showsIssue(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	bug := &v1alpha1.Label{
		ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "bug", UID: "bug"},
		Spec:       v1alpha1.LabelSpec{ID: 30, Title: "bug", Color: "red", GroupRef: &v1alpha1.Reference{Name: "acme"}},
	}
	g.Expect(w.forge.Client.Create(t.Context(), bug)).To(Succeed())
	acme, err := w.forge.Catalog.AnyGroup(t.Context(), "acme", v1alpha1.Reference{Name: "acme"})
	g.Expect(err).NotTo(HaveOccurred())
	first := milestone.Milestone{In: item.Place(catalog.Scope{Groups: []*v1alpha1.Group{acme}}), Title: "1.0"}
	g.Expect(w.forge.Activity.Milestones.Create(t.Context(), &first)).To(Succeed())
	gone := database.User{ID: 99, UID: "gone"}
	g.Expect(w.forge.Activity.Issues.Create(t.Context(), &issue.Issue{
		In: w.project(t, "acme", "web"), Title: "Broken", Type: "incident", Confidential: true, Due: "2026-12-31", Weight: ptr.To[int64](3), Author: gone,
		Assignees: []database.User{gone, w.mary}, Labels: []issue.Label{{ID: bug.RESTID(), UID: bug.UID}, {ID: 98, UID: "gone"}}, MilestoneID: first.ID,
	})).To(Succeed())
	want := activityv1.IssueSpec{
		ItemSpec: activityv1.ItemSpec{
			ProjectRef: activityv1.ProjectReference{Name: "web"}, Title: "Broken", Assignees: []string{"mary"}, Labels: []string{"bug"}, Milestone: "1.0",
		},
		Type: "incident", Confidential: true, DueDate: "2026-12-31", Weight: ptr.To[int64](3),
	}
	g.Expect(w.issues.Get(in(t.Context(), "acme"), "web-1", nil)).To(HaveField("Spec", want))
	w.forge.Move("acme/web", "lab")
	want.Labels, want.Milestone = []string{}, ""
	g.Expect(w.issues.Get(in(t.Context(), "acme"), "web-1", nil)).To(HaveField("Spec", want), "they are of a group that the project has left")
}

func TestList_limitsPages(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	g.Expect(w.forge.Activity.Database.Atomically(t.Context(), "creating issues", func(ctx context.Context, _ bun.IDB) error {
		for range 1001 {
			if err := w.forge.Activity.Issues.Create(ctx, &issue.Issue{In: w.project(t, "acme", "web"), Title: "Broken"}); err != nil {
				return err
			}
		}
		return nil
	})).To(Succeed())
	o := metainternal.ListOptions{Limit: 5000}
	for _, want := range []int{1000, 1} {
		page, err := w.issues.List(in(t.Context(), "acme"), &o)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(page.(*activityv1.IssueList).Items).To(HaveLen(want))
		o.Continue = page.(*activityv1.IssueList).Continue
	}
	g.Expect(o.Continue).To(BeEmpty())
	g.Expect(w.issues.List(in(t.Context(), "acme"), &metainternal.ListOptions{})).To(HaveField("Items", HaveLen(1001)))
}

func TestList_selectsAndPages(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	w.close(t, 1)
	selected := func(selector string) metainternal.ListOptions {
		return metainternal.ListOptions{FieldSelector: fields.ParseSelectorOrDie(selector)}
	}
	for selector, want := range map[string][]string{
		"":                          {"acme/api-1-1", "acme/web-1", "acme/web-2", "zoo/web-1"},
		"metadata.name=web-1":       {"acme/web-1", "zoo/web-1"},
		"metadata.name=web":         nil,
		"metadata.namespace=zoo":    {"zoo/web-1"},
		"status.state=closed":       {"acme/web-1"},
		"status.state!=closed":      {"acme/api-1-1", "acme/web-2", "zoo/web-1"},
		"spec.projectRef.name=web":  {"acme/web-1", "acme/web-2", "zoo/web-1"},
		"spec.projectRef.name!=web": {"acme/api-1-1"},
	} {
		g.Expect(names(w.list(t, "", selected(selector)))).To(ConsistOf(want), selector)
	}
	g.Expect(names(w.list(t, "acme", selected("spec.projectRef.name=web")))).To(Equal([]string{"acme/web-1", "acme/web-2"}))
	g.Expect(names(w.list(t, "elsewhere", selected("")))).To(BeEmpty())
	g.Expect(names(w.list(t, "acme", selected("metadata.namespace=zoo")))).To(BeEmpty(), "RBAC was asked about acme alone")

	var all []string
	o := metainternal.ListOptions{Limit: 2, FieldSelector: fields.ParseSelectorOrDie("status.state!=closed")}
	for {
		page := w.list(t, "", o)
		g.Expect(len(page.Items)).To(BeNumerically("<=", 2))
		all = append(all, names(page)...)
		if o.Continue = page.Continue; o.Continue == "" {
			break
		}
	}
	g.Expect(all).To(ConsistOf("acme/api-1-1", "acme/web-2", "zoo/web-1"))
}

func TestWatch_followsNamespace(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	watched, err := w.Watch(in(t.Context(), "acme"), &metainternal.ListOptions{
		ResourceVersion: w.list(t, "acme", metainternal.ListOptions{}).ResourceVersion, FieldSelector: fields.ParseSelectorOrDie("metadata.name=web-1"),
	})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(watched.Stop)
	next := func() []any {
		t.Helper()
		var e watch.Event
		g.Eventually(watched.ResultChan()).WithTimeout(patience.Wait).Should(Receive(&e))
		m := e.Object.(*activityv1.MergeRequest)
		return []any{e.Type, m.Namespace, m.Name, m.Status.State}
	}
	w.close(t, 4)
	w.close(t, 1)
	g.Expect(next()).To(Equal([]any{watch.Modified, "acme", "web-1", "closed"}))
	g.Expect(w.store.Delete(t.Context(), 1)).To(Succeed())
	g.Expect(next()).To(Equal([]any{watch.Deleted, "acme", "web-1", "closed"}))
}

func TestPipelines_andTheirJobsAreShown(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	p := pipeline.Pipeline{In: w.project(t, "acme", "api-1"), Ref: "main", SHA: "1", Source: "push", Name: "Nightly", User: w.mary}
	j := &pipeline.Job{Name: "test", Stage: "build", When: "on_success", Needs: []pipeline.Need{}, Tags: []string{"linux"}, Spec: &config.Job{}}
	pipelines := w.forge.Activity.Pipelines
	g.Expect(pipelines.Create(t.Context(), &p, []*pipeline.Job{j}, nil)).To(Succeed())
	_, err := pipelines.Advance(t.Context(), p.ID)
	g.Expect(err).NotTo(HaveOccurred())

	obj, err := w.pipelines.Get(in(t.Context(), "acme"), "api-1-1", nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(obj.(*activityv1.Pipeline).Spec).To(Equal(activityv1.PipelineSpec{
		ProjectRef: activityv1.ProjectReference{Name: "api-1"}, Ref: "main", SHA: "1", Source: "push", Title: "Nightly", User: "mary",
	}))
	g.Expect(obj.(*activityv1.Pipeline).Status).To(And(HaveField("ID", p.ID), HaveField("IID", int64(1)), HaveField("State", "pending"),
		HaveField("WebURL", fmt.Sprintf("%s/acme/api-1/-/pipelines/%d", familytest.WebURL, p.ID))))

	name := fmt.Sprintf("api-1-%d", j.ID)
	obj, err = w.jobs.Get(in(t.Context(), "acme"), name, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(obj.(*activityv1.Job).Spec).To(Equal(activityv1.JobSpec{
		ProjectRef: activityv1.ProjectReference{Name: "api-1"}, Pipeline: "api-1-1", Title: "test", Stage: "build", Tags: []string{"linux"}, User: "mary",
	}))
	list, err := w.jobs.List(in(t.Context(), "acme"), &metainternal.ListOptions{FieldSelector: fields.ParseSelectorOrDie("status.state=pending")})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(list.(*activityv1.JobList).Items).To(HaveExactElements(And(HaveField("Name", name), HaveField("Status.ID", j.ID))))

	watched, err := w.jobs.Watch(in(t.Context(), "acme"), &metainternal.ListOptions{ResourceVersion: list.(*activityv1.JobList).ResourceVersion})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(watched.Stop)
	_, err = pipelines.Cancel(t.Context(), p.ID)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pipelines.Delete(t.Context(), p.ID)).To(Succeed())
	var last watch.Event
	g.Eventually(watched.ResultChan()).WithTimeout(patience.Wait).Should(Receive(&last, HaveField("Type", watch.Deleted)))
	g.Expect(last.Object.(*activityv1.Job)).To(And(HaveField("Name", name), HaveField("Status.State", "canceled"), HaveField("Spec.ProjectRef.Name", "api-1")))
}

func TestWatch_expires(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	_, err := w.Watch(in(t.Context(), "acme"), &metainternal.ListOptions{ResourceVersion: "1000000"})
	g.Expect(err).To(Satisfy(apierrors.IsResourceExpired))
	gone := mergerequest.MergeRequest{In: database.Subject{Kind: database.KindProject, ID: 99, UID: "gone"}, SourceBranch: "one", TargetBranch: "main"}
	before := w.list(t, "acme", metainternal.ListOptions{}).ResourceVersion
	g.Expect(w.store.Create(t.Context(), &gone)).To(Succeed())
	g.Expect(w.list(t, "", metainternal.ListOptions{}).Items).To(HaveLen(4), "its project is gone")
	g.Expect(w.store.Delete(t.Context(), gone.ID)).To(Succeed())
	_, err = w.Watch(in(t.Context(), "acme"), &metainternal.ListOptions{ResourceVersion: before})
	g.Expect(err).To(Satisfy(apierrors.IsResourceExpired), "it could have been in this namespace")
}
