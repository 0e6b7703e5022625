package issues_test

import (
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/database"
)

func TestCreate_createsUnknownLabels(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	g.Expect(w.create("rita", `{"title":"Crash","labels":"new, bug,new,,"}`).Labels).To(Equal([]string{"bug", "new"}))
	g.Expect(w.create("rita", `{"title":"Crash","labels":["new"]}`).Labels).To(Equal([]string{"new"}))
	var all v1alpha1.LabelList
	g.Expect(w.Client.List(t.Context(), &all)).To(Succeed())
	g.Expect(all.Items).To(HaveLen(3))
	g.Expect(w.iids("rita", "/projects/20/issues?labels=new")).To(Equal("[2 1]"))
}

func TestCreate_omitsLabelsThatProjectRefuses(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	web, err := w.Catalog.ProjectByPath(t.Context(), "acme/web")
	g.Expect(err).NotTo(HaveOccurred())
	web = web.DeepCopy()
	web.Spec.RESTWrites = v1alpha1.RESTWritesRefuse
	g.Expect(w.Client.Update(t.Context(), web)).To(Succeed())
	g.Expect(w.create("rita", `{"title":"Crash","labels":"bug,new"}`).Labels).To(Equal([]string{"bug"}))
}

func TestCreate_omitsLabelsBeyondQuota(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.Before = func(verb string, o client.Object) error {
		if _, ok := o.(*v1alpha1.Label); ok && verb != "delete" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "labels"}, o.GetName(), errors.New("exceeded quota: objects"))
		}
		return nil
	}
	g.Expect(w.create("rita", `{"title":"Crash","labels":"bug,new"}`).Labels).To(Equal([]string{"bug"}))
}

func TestIssue_showsNoMilestoneAndLabelOfGroupThatProjectHasLeft(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	m := w.milestone(place[*v1alpha1.Group](w, database.KindGroup, 10), "1.0")
	of := &v1alpha1.Reference{Name: "acme"}
	g.Expect(w.Client.Create(t.Context(), familytest.Group("acme", "open", 11, "", v1alpha1.VisibilityPublic))).To(Succeed())
	g.Expect(w.Client.Create(t.Context(), &v1alpha1.Label{
		ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "inner"}, Spec: v1alpha1.LabelSpec{ID: 32, Title: "inner", Color: "red", GroupRef: of},
	})).To(Succeed())
	i := w.create("rita", fmt.Sprintf(`{"title":"Crash","labels":"bug,inner","milestone_id":%d}`, m))
	g.Expect(i).To(And(HaveField("Labels", []string{"bug", "inner"}), HaveField("Milestone.Title", "1.0")))
	w.Move("acme/web", "open")
	g.Expect(w.done("", "GET /projects/20/issues/1", "")).To(And(HaveField("Labels", []string{"bug"}), HaveField("Milestone", BeNil())))
}
