package projects_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	. "github.com/forgeplane/forgeplane/apiserver/v4/projects"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// newSharingForge returns a forge with the private projects acme/site (20) and acme/other (21), and with the groups bolt (30, public),
// bolt/team (31) and dark (32, private) of another namespace. Mary is a Maintainer of acme, otto a Developer of bolt and dina the Owner of
// dark. The project acme/site has the shares.
func newSharingForge(t *testing.T, v v1alpha1.Visibility, shares ...v1alpha1.Share) *familytest.Forge {
	t.Helper()
	site := familytest.Project("acme", "site", 20, "acme", v)
	site.Spec.SharedWith = shares
	f := familytest.New(t,
		familytest.User("root", 1, familytest.Admin), familytest.User("mary", 2), familytest.User("otto", 3), familytest.User("dina", 4),
		familytest.Group("acme", "acme", 10, "", v), site,
		familytest.Project("acme", "other", 21, "acme", v1alpha1.VisibilityPrivate),
		familytest.Group("bolt", "bolt", 30, "", v1alpha1.VisibilityPublic),
		familytest.Group("bolt", "team", 31, "bolt", v1alpha1.VisibilityPublic),
		familytest.Group("bolt", "dark", 32, "", v1alpha1.VisibilityPrivate),
		familytest.InGroup("acme", "acme", "mary", v1alpha1.RoleMaintainer),
		familytest.InGroup("bolt", "bolt", "otto", v1alpha1.RoleDeveloper),
		familytest.InGroup("bolt", "dark", "dina", v1alpha1.RoleOwner))
	f.Keep(familytest.Repositories(t, f.Catalog))
	return f.Serve(New(f.Kit).Table())
}

// ids returns the ids of the listed projects.
func ids(t *testing.T, a familytest.Answer) string {
	t.Helper()
	var all []string
	for _, p := range familytest.Decode[[]struct{ ID int64 }](t, a) {
		all = append(all, strconv.FormatInt(p.ID, 10))
	}
	return strings.Join(all, " ")
}

func TestShareProject_givesMembersOfTheGroupARole(t *testing.T) {
	g := NewWithT(t)
	f := newSharingForge(t, v1alpha1.VisibilityPrivate)
	g.Expect(f.As("otto", "GET /projects/20", "").Code).To(Equal(404))
	g.Expect(f.As("mary", "POST /projects/20/share", `{"group_id":30,"group_access":40,"expires_at":"2099-01-02"}`).String()).
		To(Equal(`201 {"project_id":20,"group_id":30,"group_access":40,"expires_at":"2099-01-02"}`))
	shown := f.As("otto", "GET /projects/20", "")
	g.Expect(shown.Body).To(And(
		ContainSubstring(`"shared_with_groups":[{"group_id":30,"group_name":"bolt","group_full_path":"bolt","group_access_level":40,"expires_at":"2099-01-02"}]`),
		ContainSubstring(`"group_access":{"access_level":30,`)))
	g.Expect(ids(t, f.As("otto", "GET /projects", ""))).To(Equal("20"))
	g.Expect(ids(t, f.As("otto", "GET /projects?membership=true&min_access_level=30", ""))).To(Equal("20"))
	g.Expect(ids(t, f.As("otto", "GET /projects?min_access_level=40", ""))).To(BeEmpty())
	g.Expect(ids(t, f.As("otto", "GET /groups/30/projects", ""))).To(Equal("20"))
	g.Expect(ids(t, f.As("otto", "GET /groups/30/projects?with_shared=false", ""))).To(BeEmpty())
	g.Expect(ids(t, f.As("dina", "GET /groups/30/projects", ""))).To(BeEmpty(), "she does not see the project")

	p, err := catalog.Get[*v1alpha1.Project](t.Context(), f.Catalog, "acme", "site")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p.Spec.SharedWith).To(HaveExactElements(HaveField("GroupRef", And(HaveField("ID", int64(30)), HaveField("UID", Not(BeEmpty()))))))

	g.Expect(f.As("mary", "DELETE /projects/20/share/30", "").String()).To(Equal("204"))
	g.Expect(f.As("otto", "GET /projects/20", "").Code).To(Equal(404))
	g.Expect(f.As("mary", "DELETE /projects/20/share/30", "").String()).To(Equal(`404 {"message":"404 Group Link Not Found"}`))
}

func TestShareProject_refusesWithAReason(t *testing.T) {
	shared := v1alpha1.Share{GroupRef: v1alpha1.Reference{Path: "bolt/team"}, Role: v1alpha1.RoleGuest}
	for _, tt := range []struct{ who, body, want string }{
		{"mary", `{}`, `400 {"error":"group_id is missing, group_access is missing"}`},
		{"mary", `{"group_id":30,"group_access":15}`, `400 {"error":"group_access does not have a valid value"}`},
		{"mary", `{"group_id":30,"group_access":50}`, `403 {"message":"403 Forbidden"}`},
		{"root", `{"group_id":30,"group_access":50}`, `201 {"project_id":20,"group_id":30,"group_access":50,"expires_at":null}`},
		{"mary", `{"group_id":99,"group_access":10}`, `404 {"message":"404 Group Not Found"}`},
		{"mary", `{"group_id":32,"group_access":10}`, `404 {"message":"404 Group Not Found"}`},
		{"mary", `{"group_id":31,"group_access":10}`, `409 {"message":"Group already shared with this group"}`},
		{"mary", `{"group_id":10,"group_access":10}`, `409 {"message":"Project cannot be shared with the group it is in or one of its ancestors."}`},
		{"mary", `{"group_id":30,"group_access":10,"expires_at":"2001-01-01"}`, `400 {"message":{"expires_at":["cannot be a date in the past"]}}`},
		{"dina", `{"group_id":30,"group_access":10}`, `404 {"message":"404 Project Not Found"}`},
	} {
		t.Run(tt.who+" "+tt.body, func(t *testing.T) {
			if got := newSharingForge(t, v1alpha1.VisibilityPrivate, shared).As(tt.who, "POST /projects/20/share", tt.body).String(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestSharedWithGroups_omitsGroupsThatTheCallerDoesNotSee(t *testing.T) {
	g := NewWithT(t)
	past := metav1.NewTime(time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC))
	f := newSharingForge(t, v1alpha1.VisibilityPublic,
		v1alpha1.Share{GroupRef: v1alpha1.Reference{Path: "dark"}, Role: v1alpha1.RoleDeveloper},
		v1alpha1.Share{GroupRef: v1alpha1.Reference{ID: 31}, Role: v1alpha1.RoleGuest},
		v1alpha1.Share{GroupRef: v1alpha1.Reference{ID: 30}, Role: v1alpha1.RoleGuest, ExpiresAt: &past},
		v1alpha1.Share{GroupRef: v1alpha1.Reference{Path: "nowhere"}, Role: v1alpha1.RoleGuest})
	for who, want := range map[string]string{"": "bolt/team", "mary": "bolt/team", "dina": "dark bolt/team", "root": "dark bolt/team"} {
		for _, request := range []string{"GET /projects/20", "GET /projects?search=site"} {
			body := f.As(who, request, "").Body
			var paths []string
			for _, at := range strings.Split(body, `"group_full_path":"`)[1:] {
				path, _, _ := strings.Cut(at, `"`)
				paths = append(paths, path)
			}
			g.Expect(strings.Join(paths, " ")).To(Equal(want), "%s by %q", request, who)
		}
	}
}

func TestUnshareProject_answersAsWithoutShareIfTheGroupIsHidden(t *testing.T) {
	g := NewWithT(t)
	f := newSharingForge(t, v1alpha1.VisibilityPrivate, v1alpha1.Share{GroupRef: v1alpha1.Reference{Path: "dark"}, Role: v1alpha1.RoleGuest})
	const missing = `404 {"message":"404 Group Link Not Found"}`
	g.Expect(f.As("mary", "DELETE /projects/20/share/32", "").String()).To(Equal(missing))
	g.Expect(f.As("root", "DELETE /projects/20/share/32", "").String()).To(Equal("204"))
	g.Expect(f.As("root", "DELETE /projects/20/share/32", "").String()).To(Equal(missing))
}

func TestShareProject_dropsWhatIsOver(t *testing.T) {
	g := NewWithT(t)
	past := metav1.NewTime(time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC))
	f := newSharingForge(t, v1alpha1.VisibilityPrivate,
		v1alpha1.Share{GroupRef: v1alpha1.Reference{ID: 30}, Role: v1alpha1.RoleGuest, ExpiresAt: &past},
		v1alpha1.Share{GroupRef: v1alpha1.Reference{ID: 77, UID: "gone"}, Role: v1alpha1.RoleGuest},
		v1alpha1.Share{GroupRef: v1alpha1.Reference{Path: "comes/later"}, Role: v1alpha1.RoleGuest})
	g.Expect(f.As("mary", "POST /projects/20/share", `{"group_id":30,"group_access":20}`).Code).To(Equal(201))
	p, err := catalog.Get[*v1alpha1.Project](t.Context(), f.Catalog, "acme", "site")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p.Spec.SharedWith).To(HaveExactElements(
		HaveField("GroupRef.Path", "comes/later"), And(HaveField("GroupRef.ID", int64(30)), HaveField("Role", v1alpha1.RoleReporter))))
}
