package toy_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/aggregated/virtual/virtualtest"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/activity"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/test/patience"
	"github.com/forgeplane/forgeplane/test/toy/apiserver/v4/toys"
	"github.com/forgeplane/forgeplane/test/toy/apiserver/virtualtoy"
	"github.com/forgeplane/forgeplane/test/toy/family"
	"github.com/forgeplane/forgeplane/test/toy/internal/toy"
)

func TestToys_areAssembledAndShown(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g := NewWithT(t)
		db := databasetest.Open(t, name, job.Migrations(), toy.Migrations())
		store := toy.New(db)
		f := familytest.New(t,
			familytest.User("root", 1, familytest.Admin), familytest.User("mary", 2),
			familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPrivate),
			familytest.Project("acme", "web", 20, "acme", v1alpha1.VisibilityPrivate))
		var queue *job.Queue
		f.Queue = func(o job.QueueOptions) family.Tasks {
			queue = job.NewQueue(db, o)
			return queue
		}
		stores := family.Stores{Stores: activity.Stores{Database: db}, Toys: store}
		f.Serve(toys.New(family.Kit{Kit: f.Kit, Activity: stores}).Table())

		g.Expect(f.As("mary", "POST /projects/20/toys", "").Code).To(Equal(404))
		g.Expect(f.As("root", "POST /projects/20/toys", "").String()).To(Equal(`201 {"id":1,"state":"ordered"}`))
		g.Expect(f.As("root", "POST /projects/20/toys", "").String()).To(Equal(`201 {"id":2,"state":"ordered"}`))
		start(t, queue)
		g.Eventually(func() string { return f.As("root", "GET /projects/20/toys", "").String() }).WithTimeout(patience.Wait).
			Should(Equal(`200 [{"id":1,"state":"whole"},{"id":2,"state":"whole"}]`))

		virtual := virtualtoy.Group(store).Info().VersionedResourcesStorageMap["v1alpha1"]["toys"]
		ctx := request.WithNamespace(t.Context(), "acme")
		g.Expect(virtual.(rest.Getter).Get(ctx, "toy-2", nil)).To(HaveField("Status.State", "whole"))
		_, err := virtual.(rest.Getter).Get(request.WithNamespace(t.Context(), "zoo"), "toy-2", nil)
		g.Expect(err).To(HaveOccurred())
		list := func(o *metainternal.ListOptions) *virtualtest.ToyList {
			all, err := virtual.(rest.Lister).List(ctx, o)
			g.Expect(err).NotTo(HaveOccurred())
			return all.(*virtualtest.ToyList)
		}
		g.Expect(list(&metainternal.ListOptions{FieldSelector: fields.OneTermEqualSelector("status.state", "ordered")}).Items).To(BeEmpty())
		first := list(&metainternal.ListOptions{Limit: 1})
		g.Expect(first.Items).To(HaveLen(1))
		second := list(&metainternal.ListOptions{Limit: 1, Continue: first.Continue})
		g.Expect(second.Items).To(ConsistOf(HaveField("Name", "toy-2")))
		g.Expect(second.Continue).To(BeEmpty())

		watched, err := virtual.(rest.Watcher).Watch(ctx, &metainternal.ListOptions{ResourceVersion: second.ResourceVersion})
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(watched.Stop)
		f.As("root", "POST /projects/20/toys", "")
		g.Eventually(watched.ResultChan()).WithTimeout(patience.Wait).Should(Receive(HaveField("Object", WithTransform(
			func(o runtime.Object) string { return o.(*virtualtest.Toy).Name }, Equal("toy-3")))))
	})
}

// start runs the tasks of a queue until the test ends.
func start(t *testing.T, queue *job.Queue) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- queue.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
