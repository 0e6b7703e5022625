package namespace_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	. "github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/groups"
	"github.com/forgeplane/forgeplane/apiserver/v4/projects"
)

// newForge returns a forge of root, who is an administrator, bob and max, that serves what namespaces are about.
func newForge(t *testing.T) *Forge {
	t.Helper()
	f := New(t, User("root", 1, Admin), User("bob", 2), User("max", 3))
	return f.Serve(
		groups.New(f.Catalog, f.Guard, f.Writer, f.Clock, WebURL, "home").Table(),
		projects.New(f.Catalog, f.Guard, f.Writer, f.Clock, WebURL, "home").Table(),
	)
}

const notAvailable = `400 {"message":{"namespace":["is not available: another group holds the path"]}}`

func TestAUserOfADeletedOnesNameOwnsNothingOfHis(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	g.Expect(f.As("bob", "POST /projects", `{"name":"secret"}`).Code).To(Equal(201))
	g.Expect(f.As("bob", "POST /groups", `{"name":"Bob's","path":"bobs"}`).Code).To(Equal(201))
	reads := []string{"GET /projects/bob%2Fsecret", "GET /groups/bobs"}
	for _, request := range reads {
		g.Expect(f.As("bob", request, "").Code).To(Equal(200))
	}

	old, err := f.Catalog.User(t.Context(), v1alpha1.Reference{Name: "bob"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.Writer.Delete(t.Context(), old.DeepCopy())).To(Succeed())
	bob := User("bob", 50)
	g.Expect(f.Writer.Create(t.Context(), bob)).To(Succeed())
	g.Expect(f.Writer.Observe(t.Context(), bob, func() { bob.Status.ID = 50 })).To(Succeed())

	for _, request := range reads {
		g.Expect(f.As("bob", request, "").Code).To(Equal(404), request)
	}
	g.Expect(f.As("bob", "POST /projects", `{"name":"mine"}`).String()).To(Equal(notAvailable))
}
