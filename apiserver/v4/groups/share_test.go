package groups_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
)

func TestShareGroup_givesMembersOfTheGroupARole(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t,
		familytest.Group("bolt", "bolt", 30, "", v1alpha1.VisibilityPublic), familytest.InGroup("bolt", "bolt", "otto", v1alpha1.RoleReporter),
		familytest.Group("hidden", "inner", 13, "hidden", v1alpha1.VisibilityPrivate), familytest.InGroup("hidden", "hidden", "mary", v1alpha1.RoleOwner))
	g.Expect(f.As("otto", "GET /groups/13", "").Code).To(Equal(404))
	got := f.As("mary", "POST /groups/12/share", `{"group_id":30,"group_access":30}`)
	g.Expect(got.Code).To(Equal(201))
	const shared = `"shared_with_groups":[{"group_id":30,"group_name":"bolt","group_full_path":"bolt","group_access_level":30,"expires_at":null}]`
	g.Expect(got.Body).To(ContainSubstring(shared))
	g.Expect(f.As("otto", "GET /groups/12", "").Body).To(ContainSubstring(shared))
	g.Expect(f.As("otto", "GET /groups/13", "").Body).To(ContainSubstring(`"shared_with_groups":[]`))
	g.Expect(f.As("otto", "GET /groups?min_access_level=20", "").Body).To(And(ContainSubstring(`"id":12,`), ContainSubstring(`"id":13,`)))
	g.Expect(f.As("otto", "GET /groups?min_access_level=30", "").Body).NotTo(ContainSubstring(`"id":12,`))

	g.Expect(f.As("mary", "DELETE /groups/12/share/30", "").String()).To(Equal("204"))
	g.Expect(f.As("otto", "GET /groups/12", "").Code).To(Equal(404))
	g.Expect(f.As("mary", "DELETE /groups/12/share/30", "").String()).To(Equal(`404 {"message":"404 Group Link Not Found"}`))
}

func TestShareGroup_keepsSharesThatLeadNowhere(t *testing.T) {
	g := NewWithT(t)
	lost := familytest.Group("bolt", "lost", 31, "missing", v1alpha1.VisibilityPublic)
	lost.UID = "lost"
	shared := familytest.Group("acme", "shared", 14, "acme", v1alpha1.VisibilityPublic)
	to := func(ref v1alpha1.Reference) v1alpha1.Share {
		return v1alpha1.Share{GroupRef: ref, Role: v1alpha1.RoleGuest}
	}
	later, misplaced := to(v1alpha1.Reference{Path: "later"}), to(v1alpha1.Reference{ID: 31, UID: string(lost.UID)})
	renamed, gone := to(v1alpha1.Reference{Path: "former", UID: string(lost.UID)}), to(v1alpha1.Reference{ID: 31, UID: "gone"})
	shared.Spec.SharedWith = []v1alpha1.Share{later, misplaced, gone, renamed}
	f := newForge(t, familytest.Group("bolt", "bolt", 30, "", v1alpha1.VisibilityPublic), lost, shared)
	g.Expect(f.As("mary", "POST /groups/14/share", `{"group_id":30,"group_access":10}`).Code).To(Equal(201))
	g.Expect(f.Client.Get(t.Context(), client.ObjectKeyFromObject(shared), shared)).To(Succeed())
	g.Expect(shared.Spec.SharedWith).To(HaveExactElements(later, misplaced, renamed, HaveField("GroupRef.ID", int64(30))))
}

func TestShareGroup_refusesWithAReason(t *testing.T) {
	bolt := familytest.Group("bolt", "bolt", 30, "", v1alpha1.VisibilityPublic)
	shared := familytest.Group("acme", "shared", 14, "acme", v1alpha1.VisibilityPublic)
	shared.Spec.SharedWith = []v1alpha1.Share{{GroupRef: v1alpha1.Reference{Path: "bolt"}, Role: v1alpha1.RoleGuest}}
	for _, tt := range []struct{ who, body, want string }{
		{"mary", `{"group_id":30,"group_access":10}`, `409 {"message":"Shared group The group has already been shared with this group"}`},
		{"mary", `{"group_id":14,"group_access":10}`, `409 {"message":"Group cannot be shared with itself or one of its ancestors."}`},
		{"mary", `{"group_id":10,"group_access":10}`, `409 {"message":"Group cannot be shared with itself or one of its ancestors."}`},
		{"mary", `{"group_id":12,"group_access":10}`, `404 {"message":"404 Group Not Found"}`},
		{"dora", `{"group_id":30,"group_access":10}`, `403 {"message":"403 Forbidden"}`},
	} {
		t.Run(tt.who+" "+tt.body, func(t *testing.T) {
			f := newForge(t, []client.Object{bolt.DeepCopy(), shared.DeepCopy()}...)
			if got := f.As(tt.who, "POST /groups/14/share", tt.body).String(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}
