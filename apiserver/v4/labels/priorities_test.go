package labels_test

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	. "github.com/forgeplane/forgeplane/apiserver/v4/labels"
)

func giving(p *v1alpha1.Project, title string, priority int32) *v1alpha1.Project {
	p.Spec.LabelPriorities = append(p.Spec.LabelPriorities, v1alpha1.LabelPriority{Title: title, Priority: priority})
	return p
}

// priorities returns four projects that give the label legal a priority, as web does with the priority 7. Three of them are below acme,
// and the last of these refuses changes of what is declared, as it is itself. The fourth is in another root group.
func priorities() []client.Object {
	fixed := giving(familytest.Project("acme", "fixed", 24, "acme", v1alpha1.VisibilityPublic), "legal", 3)
	fixed.Spec.RESTWrites = v1alpha1.RESTWritesRefuseDeclared
	return []client.Object{
		giving(familytest.Project("acme", "top", 22, "acme", v1alpha1.VisibilityPublic), "legal", 1),
		giving(giving(familytest.Project("acme", "side", 23, "sub", v1alpha1.VisibilityPublic), "legal", 2), "lawful", 8),
		fixed, familytest.Group("bolt", "bolt", 12, "", v1alpha1.VisibilityPublic),
		giving(familytest.Project("bolt", "app", 25, "bolt", v1alpha1.VisibilityPublic), "legal", 4),
	}
}

// applied shows projects as if a GitOps controller had applied them.
type applied struct{ client.Reader }

func (a applied) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	err := a.Reader.Get(ctx, key, o, opts...)
	if _, ok := o.(*v1alpha1.Project); ok {
		o.SetManagedFields([]metav1.ManagedFieldsEntry{{
			Manager: "gitops", Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:path":{}}}`),
		}})
	}
	return err
}

// given returns the priorities that the projects declare, each as "project title priority".
func (f forge) given(t *testing.T) (all []string) {
	t.Helper()
	var l v1alpha1.ProjectList
	if err := f.Client.List(t.Context(), &l); err != nil {
		t.Fatal(err)
	}
	for _, p := range l.Items {
		for _, given := range p.Spec.LabelPriorities {
			all = append(all, fmt.Sprintf("%s %s %d", p.Name, given.Title, given.Priority))
		}
	}
	return all
}

func TestRenameGroupLabel_keepsItsPriorities(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t, priorities()...)
	before := f.given(t)
	g.Expect(f.As("mary", "PUT /projects/20/labels/legal", `{"color":"red"}`).Code).To(Equal(200))
	g.Expect(f.As("mary", "PUT /projects/20/labels/urgent", `{"new_name":"now"}`).Code).To(Equal(200))
	g.Expect(f.given(t)).To(ConsistOf(before), "neither touches the priorities of legal")

	shown := familytest.Decode[Label](t, f.As("mary", "PUT /projects/20/labels/legal", `{"new_name":"lawful"}`))
	g.Expect(shown.Priority).To(HaveValue(BeEquivalentTo(7)))
	g.Expect(f.given(t)).To(ConsistOf(
		"web bug 9", "web lawful 7", "top lawful 1", "side lawful 2", "fixed legal 3", "app legal 4"))

	shown = familytest.Decode[Label](t, f.As("mary", "PUT /projects/20/labels/lawful", `{"new_name":"law","priority":null}`))
	g.Expect(shown.Priority).To(BeNil())
	g.Expect(f.given(t)).To(ConsistOf("web bug 9", "top law 1", "side law 2", "fixed legal 3", "app legal 4"))
}

func TestRenameGroupLabel_isCompletedWhenRepeated(t *testing.T) {
	for cut := 1; ; cut++ {
		g := NewWithT(t)
		f := newForge(t, priorities()...)
		writes := 0
		f.Before = func(string, client.Object) error {
			if writes++; writes >= cut {
				return errCut
			}
			return nil
		}
		first := f.As("mary", "PUT /projects/20/labels/33", `{"new_name":"law"}`)
		f.Before = nil
		if first.Code != 200 {
			g.Expect(f.As("mary", "PUT /projects/20/labels/33", `{"new_name":"law"}`).Code).To(Equal(200))
		}
		g.Expect(f.given(t)).To(ConsistOf(
			"web bug 9", "web law 7", "top law 1", "side law 2", "side lawful 8", "fixed legal 3", "app legal 4"), "cut at %d", cut)
		if first.Code == 200 {
			g.Expect(cut).To(BeNumerically(">", 4), "four writes could be cut off")
			return
		}
	}
}

func TestDeleteGroupLabel_removesItsPriorities(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t, priorities()...)
	g.Expect(f.As("mary", "DELETE /projects/20/labels/legal", "").Code).To(Equal(204))
	g.Expect(f.given(t)).To(ConsistOf("web bug 9", "side lawful 8", "fixed legal 3", "app legal 4"))

	again := declared("again", "legal", 90, ofGroup("acme"))
	g.Expect(f.Client.Create(t.Context(), again)).To(Succeed())
	for project, priority := range map[int]OmegaMatcher{20: BeNil(), 22: BeNil(), 24: HaveValue(BeEquivalentTo(3))} {
		l := familytest.Decode[Label](t, f.As("mary", fmt.Sprintf("GET /projects/%d/labels/legal", project), ""))
		g.Expect(l.Priority).To(priority, "in project %d", project)
	}
}

func TestPromoteLabel_clearsStalePriorities(t *testing.T) {
	stale := func(policy v1alpha1.RESTWrites) forge {
		p := giving(familytest.Project("acme", "side", 23, "sub", v1alpha1.VisibilityPublic), "bug", 4)
		p.Spec.RESTWrites = policy
		return newForge(t, p, declared("other", "bug", 60, ofProject("side")))
	}
	g := NewWithT(t)
	f := stale(v1alpha1.RESTWritesAllow)
	g.Expect(f.As("mary", "PUT /projects/20/labels/bug/promote", "").Code).To(Equal(200))
	l := familytest.Decode[Label](t, f.As("mary", "GET /projects/23/labels/bug", ""))
	g.Expect(l.IsProjectLabel).To(BeFalse())
	g.Expect(l.Priority).To(BeNil())
	g.Expect(f.given(t)).To(ConsistOf("web legal 7", "web bug 0"))

	f = stale(v1alpha1.RESTWritesRefuse)
	g.Expect(f.As("mary", "PUT /projects/20/labels/bug/promote", "").Code).To(Equal(403))
	g.Expect(f.given(t)).To(ConsistOf("web legal 7", "web bug 9", "side bug 4"))
}
