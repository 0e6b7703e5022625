package labels_test

import (
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	. "github.com/forgeplane/forgeplane/apiserver/v4/labels"
	"github.com/forgeplane/forgeplane/internal/issue"
)

// errCut is the error of every write from the one at which a request is cut off.
var errCut = errors.New("cut off")

// siblings returns more labels with the title bug: two in another project of the group, and one in a project of the group above.
func siblings() []client.Object {
	of := ofProject("secret")
	of.Priority = ptr.To[int32](3)
	return []client.Object{
		familytest.Project("acme", "top", 22, "acme", v1alpha1.VisibilityPublic),
		declared("sibling", "bug", 60, of), declared("twice", "bug", 61, ofProject("secret")), declared("further", "bug", 62, ofProject("top")),
	}
}

func TestPromoteLabel_makesItAGroupLabel(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t, siblings()...)
	f.subscribe(t, 30, 2)
	f.subscribe(t, 60, 3, 4)
	f.issue(t, 20, 30, func(i *issue.Issue) { i.State = issue.Opened })
	f.issue(t, 21, 60, func(i *issue.Issue) { i.State = issue.Closed })
	f.mergeRequest(t, 20, 30)
	f.mergeRequest(t, 21, 60)
	got := f.As("rita", "PUT /projects/20/labels/bug/promote", "")
	g.Expect(got.Code).To(Equal(200))
	g.Expect(got.Body).To(MatchJSON(`{"id":30,"name":"bug","description":"Something is **wrong**","description_html":"Something is <strong>wrong</strong>",
		"color":"#FFFFFF","open_issues_count":1,"closed_issues_count":0,"open_merge_requests_count":1,"subscribed":true}`))
	expectPromoted(t, f, 30)
	g.Expect(f.As("rita", "GET /groups/11/labels/bug", "").Body).To(ContainSubstring(`"open_issues_count":1,"closed_issues_count":1,"open_merge_requests_count":2`))
}

// expectPromoted expects that the label bug of the group sub has the id, and has replaced all labels bug of projects in that group.
func expectPromoted(t *testing.T, f forge, id int64) {
	t.Helper()
	g := NewWithT(t)
	var bugs []v1alpha1.LabelSpec
	for _, spec := range f.there(t) {
		if spec.Title == "bug" && (spec.ProjectRef == nil || spec.ProjectRef.Name != "top") {
			bugs = append(bugs, spec)
		}
	}
	g.Expect(bugs).To(HaveLen(1))
	g.Expect(bugs[0].ID).To(Equal(id))
	g.Expect(bugs[0].GroupRef).To(HaveField("Name", "sub"))
	g.Expect(f.subscribed(t, id)).To(ConsistOf(BeEquivalentTo(2), BeEquivalentTo(3), BeEquivalentTo(4)))
	g.Expect(f.subscribers).To(HaveLen(1))
	for project, priority := range map[int]int32{20: 0, 21: 3} {
		l := familytest.Decode[Label](t, f.As("rita", fmt.Sprintf("GET /projects/%d/labels/bug", project), ""))
		g.Expect(l.ID).To(Equal(id))
		g.Expect(l.IsProjectLabel).To(BeFalse())
		g.Expect(l.Priority).To(HaveValue(Equal(priority)), "in project %d", project)
	}
	g.Expect(familytest.Decode[Label](t, f.As("rita", "GET /projects/22/labels/bug", "")).ID).To(BeEquivalentTo(62))
}

func TestPromoteLabel_isCompletedWhenRepeated(t *testing.T) {
	for _, key := range []string{"30", "bug"} {
		for cut := 1; ; cut++ {
			f := newForge(t, siblings()...)
			f.subscribe(t, 30, 2)
			f.subscribe(t, 60, 3, 4)
			writes := 0
			f.Before = func(string, client.Object) error {
				if writes++; writes >= cut {
					return errCut
				}
				return nil
			}
			first := f.As("rita", "PUT /projects/20/labels/"+key+"/promote", "")
			f.Before = nil
			if first.Code == 200 {
				if cut < 6 {
					t.Fatalf("nothing was cut off at the %dth write", cut)
				}
				break
			}
			if got := f.As("rita", "PUT /projects/20/labels/"+key+"/promote", ""); got.Code != 200 {
				t.Fatalf("after a cut at the %dth write: %s", cut, got)
			}
			expectPromoted(t, f, 30)
		}
	}
}

func TestPromoteLabel_mergesIntoAnExistingGroupLabel(t *testing.T) {
	for _, of := range []string{"sub", "acme"} {
		t.Run(of, func(t *testing.T) {
			g := NewWithT(t)
			f := newForge(t, append(siblings(), declared("there", "bug", 70, ofGroup(of)))...)
			f.subscribe(t, 30, 2)
			f.subscribe(t, 60, 3)
			f.subscribe(t, 70, 4)
			got := f.As("mary", "PUT /projects/20/labels/promote", `{"name":"bug"}`)
			g.Expect(got.Code).To(Equal(200), got.String())
			merged := familytest.Decode[GroupLabel](t, got)
			g.Expect(merged.ID).To(BeEquivalentTo(70))
			g.Expect(merged.Color).To(Equal("#FF0000"))
			if of == "sub" {
				expectPromoted(t, f, 70)
			}
			g.Expect(f.names(t, "?search=bug")).To(Equal([]string{"bug"}))
		})
	}
}

func TestPromoteLabel_changesNothingWhenPartIsRefused(t *testing.T) {
	for of, name := range map[string]string{"a project with such a label": "secret", "a project without one": "quiet"} {
		t.Run(of, func(t *testing.T) {
			g := NewWithT(t)
			f := newForge(t, append(siblings(), familytest.Project("acme", "quiet", 23, "sub", v1alpha1.VisibilityPublic))...)
			p := &v1alpha1.Project{}
			g.Expect(f.Client.Get(t.Context(), client.ObjectKey{Namespace: "acme", Name: name}, p)).To(Succeed())
			p.Spec.RESTWrites = v1alpha1.RESTWritesRefuse
			g.Expect(f.Client.Update(t.Context(), p)).To(Succeed())
			labels, priorities := f.there(t), f.given(t)
			g.Expect(f.As("mary", "PUT /projects/20/labels/bug/promote", "").Code).To(Equal(403))
			g.Expect(f.there(t)).To(Equal(labels))
			g.Expect(f.given(t)).To(Equal(priorities))
		})
	}
}

func TestPromoteLabel_failsInPersonalProjects(t *testing.T) {
	g := NewWithT(t)
	personal := familytest.Group("home", "mary", 80, "", v1alpha1.VisibilityPublic)
	personal.Labels = map[string]string{v1alpha1.LabelPersonal: "2"}
	l := declared("own", "own", 82, ofProject("own"))
	l.Namespace = "home"
	f := newForge(t, personal, familytest.Project("home", "own", 81, "mary", v1alpha1.VisibilityPrivate),
		familytest.InGroup("home", "mary", "mary", v1alpha1.RoleOwner), l)
	g.Expect(f.As("mary", "PUT /projects/81/labels/own/promote", "").String()).To(
		Equal(`400 {"message":"Failed to promote project label to group label"}`))
}

func TestLabelWithTakenID_getsNoSubscribers(t *testing.T) {
	g := NewWithT(t)
	// A tenant pins the id of another tenant's label.
	thief := declared("thief", "bug", 33, ofProject("secret"))
	f := newForge(t, thief)
	f.subscribe(t, 33, 4)
	g.Expect(f.As("mary", "GET /projects/21/labels/bug", "").Code).To(Equal(404))
	g.Expect(f.As("mary", "DELETE /projects/21/labels/bug", "").Code).To(Equal(404))
	g.Expect(f.As("mary", "PUT /projects/20/labels/bug/promote", "").Code).To(Equal(200))
	g.Expect(f.subscribed(t, 33)).To(Equal([]int64{4}))
	g.Expect(f.there(t)).NotTo(HaveKey("thief"), "it is merged all the same")
}
