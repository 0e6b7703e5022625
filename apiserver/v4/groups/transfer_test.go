package groups_test

import (
	"fmt"
	"net/http"
	"testing"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/groups"
)

// newTransfers returns a forge in which mary owns the groups a, a/b, a/b/c and d of one namespace, and far of another one.
func newTransfers(t *testing.T) *familytest.Forge {
	t.Helper()
	f := familytest.New(t,
		familytest.User("mary", 2), familytest.User("dora", 3),
		familytest.Group("acme", "aa", 10, "", v1alpha1.VisibilityPublic), familytest.Group("acme", "bb", 11, "aa", v1alpha1.VisibilityPublic),
		familytest.Group("acme", "cc", 12, "bb", v1alpha1.VisibilityPublic), familytest.Group("acme", "dd", 13, "", v1alpha1.VisibilityPublic),
		familytest.Group("acme", "hidden", 14, "", v1alpha1.VisibilityPrivate), familytest.Group("acme", "open", 15, "", v1alpha1.VisibilityPublic),
		familytest.Group("far", "far", 16, "", v1alpha1.VisibilityPublic),
		familytest.Project("acme", "cc2", 20, "dd", v1alpha1.VisibilityPublic),
		familytest.InGroup("acme", "aa", "mary", v1alpha1.RoleOwner), familytest.InGroup("acme", "dd", "mary", v1alpha1.RoleOwner),
		familytest.InGroup("far", "far", "mary", v1alpha1.RoleOwner), familytest.InGroup("acme", "aa", "dora", v1alpha1.RoleMaintainer),
	)
	return f.Serve(groups.New(f.Kit).Table())
}

func TestTransfer_movesGroupWithEverythingBelow(t *testing.T) {
	f := newTransfers(t)
	for _, c := range []struct{ body, path string }{{`{"group_id":13}`, "dd/bb"}, {`{}`, "bb"}, {`{"group_id":10}`, "aa/bb"}, {`{"group_id":null}`, "bb"}} {
		a := f.As("mary", "POST /groups/11/transfer", c.body)
		got := familytest.Decode[struct {
			FullPath string `json:"full_path"`
		}](t, a)
		if a.Code != http.StatusCreated || got.FullPath != c.path {
			t.Fatalf("%s: got %s", c.body, a)
		}
		below := familytest.Decode[struct {
			FullPath string `json:"full_path"`
		}](t, f.As("mary", "GET /groups/12", ""))
		if below.FullPath != c.path+"/cc" {
			t.Errorf("%s: got %s below", c.body, below.FullPath)
		}
	}
}

func TestTransfer_isRefusedWithAReason(t *testing.T) {
	f := newTransfers(t)
	for _, c := range [][4]string{
		{"mary", "11", `{"group_id":99}`, `404 {"message":"404 Group Not Found"}`},
		{"mary", "11", `{"group_id":14}`, `404 {"message":"404 Group Not Found"}`},
		{"mary", "11", `{"group_id":15}`, `400 {"message":"Transfer failed: You don't have enough permissions."}`},
		{"mary", "11", `{"group_id":10}`, `400 {"message":"Transfer failed: Group is already associated to the parent group."}`},
		{"mary", "10", `{}`, `400 {"message":"Transfer failed: Group is already a root group."}`},
		{"mary", "10", `{"group_id":12}`, `400 {"message":"Transfer failed: Cannot transfer group to one of its subgroup."}`},
		{"mary", "10", `{"group_id":10}`, `400 {"message":"Transfer failed: Cannot transfer group to one of its subgroup."}`},
		{"mary", "11", `{"group_id":16}`, `400 {"message":"Transfer failed: The parent group belongs to another Kubernetes namespace than the group. Only a declaration can move the group there."}`},
		{"dora", "11", `{}`, `403 {"message":"403 Forbidden"}`},
	} {
		if got := f.As(c[0], "POST /groups/"+c[1]+"/transfer", c[2]).String(); got != c[3] {
			t.Errorf("%s to %s\ngot  %s\nwant %s", c[1], c[2], got, c[3])
		}
	}
	if a := f.As("mary", "PUT /groups/12", `{"path":"cc2"}`); a.Code != http.StatusOK {
		t.Fatalf("got %s", a)
	}
	const taken = `400 {"message":"Transfer failed: The parent group already has a subgroup or a project with the same path."}`
	if got := f.As("mary", "POST /groups/12/transfer", `{"group_id":13}`).String(); got != taken {
		t.Errorf("got %s", got)
	}
	locations := familytest.Decode[[]struct {
		FullPath string `json:"full_path"`
	}](t, f.As("mary", "GET /groups/11/transfer_locations", ""))
	if len(locations) != 1 || locations[0].FullPath != "dd" {
		t.Errorf("got %v", locations)
	}
}

func TestTransfer_leavesCallerTheOwner(t *testing.T) {
	f := newTransfers(t)
	for _, c := range []struct {
		body   string
		owners int
	}{{`{"group_id":13}`, 0}, {`{"group_id":10}`, 0}, {`{}`, 1}} {
		if a := f.As("mary", "POST /groups/11/transfer", c.body); a.Code != http.StatusCreated {
			t.Fatalf("%s: got %s", c.body, a)
		}
		var all v1alpha1.MembershipList
		if err := f.Client.List(t.Context(), &all); err != nil {
			t.Fatal(err)
		}
		owners := 0
		for _, m := range all.Items {
			if ref := m.Spec.GroupRef; ref != nil && ref.Name == "bb" && m.Spec.Role == v1alpha1.RoleOwner {
				owners++
			}
		}
		if owners != c.owners {
			t.Errorf("%s: got %d owners, want %d", c.body, owners, c.owners)
		}
	}
	var g v1alpha1.Group
	f.Named(&g, "acme/bb")
	if len(g.Annotations) > 0 {
		t.Errorf("got the annotations %v", g.Annotations)
	}
}

func TestTransfer_showsGroupToNoMorePeople(t *testing.T) {
	f := familytest.New(t,
		familytest.User("mary", 2),
		familytest.Group("acme", "closed", 10, "", v1alpha1.VisibilityPrivate), familytest.Group("acme", "sub", 11, "closed", v1alpha1.VisibilityPublic),
		familytest.Group("acme", "open", 12, "", v1alpha1.VisibilityPublic),
		familytest.InGroup("acme", "closed", "mary", v1alpha1.RoleOwner), familytest.InGroup("acme", "open", "mary", v1alpha1.RoleOwner),
	)
	f.Serve(groups.New(f.Kit).Table())
	a := f.As("mary", "POST /groups/11/transfer", `{"group_id":12}`)
	got := familytest.Decode[struct {
		Visibility string `json:"visibility"`
	}](t, a)
	if a.Code != http.StatusCreated || got.Visibility != "private" {
		t.Errorf("got %s", a)
	}
}

func TestTransfer_isRefusedByNewPlace(t *testing.T) {
	objects := []client.Object{
		familytest.User("mary", 2), familytest.User("eve", 3),
		familytest.Group("acme", "top", 10, "", v1alpha1.VisibilityPublic), familytest.Group("acme", "sub", 11, "top", v1alpha1.VisibilityPublic),
		familytest.Group("acme", "strict", 12, "", v1alpha1.VisibilityPublic), familytest.Group("acme", "api", 13, "top", v1alpha1.VisibilityPublic),
		familytest.Group("acme", "mary", 14, "top", v1alpha1.VisibilityPublic), familytest.Group("acme", "level1", 101, "", v1alpha1.VisibilityPublic),
		familytest.InGroup("acme", "top", "mary", v1alpha1.RoleOwner), familytest.InGroup("acme", "strict", "mary", v1alpha1.RoleOwner),
		familytest.InGroup("acme", "level1", "mary", v1alpha1.RoleOwner), familytest.InGroup("acme", "top", "eve", v1alpha1.RoleOwner),
	}
	objects[1].(*v1alpha1.User).Spec.External = true
	objects[4].(*v1alpha1.Group).Spec.RESTWrites = v1alpha1.RESTWritesRefuse
	for n := 2; n <= 19; n++ {
		objects = append(objects, familytest.Group("acme", fmt.Sprint("level", n), int64(100+n), fmt.Sprint("level", n-1), v1alpha1.VisibilityPublic))
	}
	f := familytest.New(t, objects...)
	f.Serve(groups.New(f.Kit).Table())
	for _, c := range [][4]string{
		{"mary", "11", `{"group_id":12}`, `403 {"message":"403 Forbidden - the group strict does not accept changes over REST: they are declared elsewhere"}`},
		{"mary", "13", `{}`, `400 {"message":{"path":["is a reserved name"]}}`},
		{"mary", "14", `{}`, `400 {"message":"Transfer failed: The parent group already has a subgroup or a project with the same path."}`},
		{"mary", "10", `{"group_id":119}`, `400 {"message":"Transfer failed: Groups can be nested up to 20 levels deep."}`},
		{"eve", "11", `{}`, `400 {"message":"Transfer failed: You don't have enough permissions."}`},
	} {
		if got := f.As(c[0], "POST /groups/"+c[1]+"/transfer", c[2]).String(); got != c[3] {
			t.Errorf("%s to %s\ngot  %s\nwant %s", c[1], c[2], got, c[3])
		}
	}
	if a := f.As("mary", "POST /groups/11/transfer", `{"group_id":119}`); a.Code != http.StatusCreated {
		t.Errorf("to the level 20: got %s", a)
	}
}

func TestTransfer_isTakenBackWhenTwoMovesDoNotFit(t *testing.T) {
	below := func(f *familytest.Forge, name, parent string) func() {
		return func() {
			var g v1alpha1.Group
			f.Named(&g, "acme/"+name)
			g.Spec.ParentRef = nil
			if parent != "" {
				g.Spec.ParentRef = ptr.To(f.Named(&v1alpha1.Group{}, "acme/"+parent))
			}
			if err := f.Client.Update(t.Context(), &g); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		request, body, moved string
		meanwhile            func(*familytest.Forge) func()
		want, parent         string
	}{
		"a cycle of two": {
			"POST /groups/11/transfer", `{"group_id":13}`, "bb", func(f *familytest.Forge) func() { return below(f, "dd", "bb") },
			`400 {"message":"Transfer failed: Cannot transfer group to one of its subgroup."}`, "aa",
		},
		"a longer cycle": {
			"POST /groups/11/transfer", `{"group_id":13}`, "bb", func(f *familytest.Forge) func() { return below(f, "dd", "cc") },
			`400 {"message":"Transfer failed: Cannot transfer group to one of its subgroup."}`, "aa",
		},
		"a parent that is removed": {
			"POST /groups/11/transfer", `{"group_id":13}`, "bb", func(f *familytest.Forge) func() {
				return func() {
					var g v1alpha1.Group
					f.Named(&g, "acme/dd")
					if err := f.Client.Delete(t.Context(), &g); err != nil {
						t.Fatal(err)
					}
				}
			}, `404 {"message":"404 Group Not Found"}`, "aa",
		},
		"one path of two groups": {
			"POST /groups/11/transfer", `{"group_id":13}`, "bb", func(f *familytest.Forge) func() { return below(f, "twin", "dd") },
			`400 {"message":"Transfer failed: The parent group already has a subgroup or a project with the same path."}`, "aa",
		},
		"one path of two root groups": {
			"POST /groups/11/transfer", `{}`, "bb", func(f *familytest.Forge) func() { return below(f, "twin", "") },
			`400 {"message":"Transfer failed: The parent group already has a subgroup or a project with the same path."}`, "aa",
		},
		"one path by a rename": {
			"PUT /groups/12", `{"path":"new","description":"renamed"}`, "cc", func(f *familytest.Forge) func() {
				return func() {
					var g v1alpha1.Group
					f.Named(&g, "acme/twin")
					g.Spec.Path, g.Spec.ParentRef = "NEW", ptr.To(f.Named(&v1alpha1.Group{}, "acme/bb"))
					if err := f.Client.Update(t.Context(), &g); err != nil {
						t.Fatal(err)
					}
				}
			}, `400 {"message":{"path":["has already been taken"]}}`, "bb",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newTransfers(t)
			twin := familytest.Group("acme", "twin", 17, "cc", v1alpha1.VisibilityPublic)
			twin.Spec.Path = "bb"
			if err := f.Client.Create(t.Context(), twin); err != nil {
				t.Fatal(err)
			}
			f.BeforePatch(c.moved, c.meanwhile(f))
			if got := f.As("mary", c.request, c.body).String(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			var g v1alpha1.Group
			f.Named(&g, "acme/"+c.moved)
			if ref := g.Spec.ParentRef; ref == nil || ref.Name != c.parent || g.Spec.Path != c.moved || g.Spec.Description != "" || len(g.Annotations) > 0 {
				t.Errorf("got %+v, %v", g.Spec, g.Annotations)
			}
		})
	}
}
