package protectedbranches_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	. "github.com/forgeplane/forgeplane/apiserver/v4/protectedbranches"
)

// byProject returns the protection that Forgeplane creates for the default branch of web.
func byProject() *v1alpha1.ProtectedBranch {
	b := declared(v1alpha1.NaturalName("web", "trunk"), "trunk", 40, v1alpha1.ProtectedBranchSpec{ProjectRef: &v1alpha1.Reference{Name: "web"}})
	b.Labels = map[string]string{v1alpha1.LabelDefaultProtection: "true"}
	return b
}

const (
	protectTrunk = "POST /projects/20/protected_branches"
	trunk        = `{"name":"trunk","push_access_level":30}`
	trunkExists  = `409 {"message":"Protected branch 'trunk' already exists"}`
)

// expectTaken expects that the answer protects trunk as requested, and that the same request then conflicts.
func expectTaken(t *testing.T, f *familytest.Forge, answer familytest.Answer) {
	t.Helper()
	made := familytest.Decode[Branch](t, answer)
	if answer.Code != http.StatusCreated || made.ID == 0 || *made.PushAccessLevels[0].AccessLevel != 30 || made.PushAccessLevels[0].ID == 0 {
		t.Fatalf("got %s", answer)
	}
	if got := f.As("mary", protectTrunk, trunk); got.String() != trunkExists {
		t.Errorf("the second time: %s", got)
	}
	found := familytest.Decode[[]Branch](t, f.As("mary", "GET /projects/20/protected_branches?search=trunk", ""))
	if len(found) != 1 || found[0].ID != made.ID {
		t.Errorf("got %+v", found)
	}
}

func TestDefaultProtection_isReplacedByARequest(t *testing.T) {
	f := newForge(t, byProject())
	expectTaken(t, f, f.As("mary", protectTrunk, trunk))
	b := byProject()
	if err := f.Client.Get(t.Context(), client.ObjectKeyFromObject(b), b); err != nil || *b.Spec.ProjectRef != *byProject().Spec.ProjectRef {
		t.Errorf("its reference, which is fixed, is %+v: %v", b.Spec.ProjectRef, err)
	}
}

func TestDefaultProtection_getsAnIDWhenChanged(t *testing.T) {
	fresh := func() *v1alpha1.ProtectedBranch {
		b := byProject()
		b.Spec.ID = 0
		return b
	}
	f := newForge(t, fresh())
	expectTaken(t, f, f.As("mary", protectTrunk, trunk))
	f = newForge(t, fresh())
	answer := f.As("mary", "PATCH /projects/20/protected_branches/trunk", `{"allow_force_push":true}`)
	if changed := familytest.Decode[Branch](t, answer); answer.Code != http.StatusOK || changed.ID == 0 || !changed.AllowForcePush {
		t.Errorf("got %s", answer)
	}
}

func TestDefaultProtection_isReplacedWhenCreatedMeanwhile(t *testing.T) {
	f := newForge(t)
	made := false
	f.Before = func(verb string, o client.Object) error {
		if _, ok := o.(*v1alpha1.ProtectedBranch); ok && verb == "create" && !made {
			made = true
			return f.Client.Create(t.Context(), byProject())
		}
		return nil
	}
	expectTaken(t, f, f.As("mary", protectTrunk, trunk))
}

func TestDefaultProtection_isKeptOnceChanged(t *testing.T) {
	for who, body := range map[string]string{"mary": `{"allow_force_push":true}`, "root": `{"allowed_to_unprotect":[{"access_level":60}]}`} {
		f := newForge(t, byProject())
		changed := f.As(who, "PATCH /projects/20/protected_branches/trunk", body)
		if changed.Code != http.StatusOK {
			t.Fatalf("got %s", changed)
		}
		if got := f.As("mary", protectTrunk, trunk); got.String() != trunkExists {
			t.Errorf("after %s: %s", body, got)
		}
		if got := f.As("mary", "GET /projects/20/protected_branches/trunk", ""); got.Body != changed.Body {
			t.Errorf("after %s it is %s", body, got)
		}
	}
}

func TestDefaultProtection_isReplacedOnlyWithUnprotectAccess(t *testing.T) {
	b := byProject()
	b.Spec.Unprotect = []v1alpha1.AccessLevel{{Role: v1alpha1.AccessAdmin}}
	f := newForge(t, b)
	if got := f.As("mary", protectTrunk, trunk); got.String() != `403 {"message":"403 Forbidden"}` {
		t.Errorf("got %s", got)
	}
	expectTaken(t, f, f.As("root", protectTrunk, trunk))
}

// applied shows protections as if a GitOps controller had applied them.
type applied struct{ client.Reader }

func (a applied) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	err := a.Reader.Get(ctx, key, o, opts...)
	if _, ok := o.(*v1alpha1.ProtectedBranch); ok {
		o.SetManagedFields([]metav1.ManagedFieldsEntry{{
			Manager: "gitops", Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:push":{}}}`),
		}})
	}
	return err
}

func TestDefaultProtection_isKeptWhenManagedElsewhere(t *testing.T) {
	for policy, want := range map[v1alpha1.RESTWrites]int{
		v1alpha1.RESTWritesAllow: http.StatusCreated, v1alpha1.RESTWritesRefuseDeclared: http.StatusForbidden,
	} {
		t.Run(string(policy), func(t *testing.T) {
			f := newForge(t, byProject())
			setRESTWrites(t, f, policy)
			f.Writer = f.WriterReading(applied{f.Client})
			f.Serve(New(f.Kit).Table())
			got := f.As("mary", protectTrunk, trunk)
			if got.Code != want || want == http.StatusForbidden && !strings.Contains(got.Body, "managed by gitops") {
				t.Errorf("got %s, want %d", got, want)
			}
		})
	}
}

func TestProtectionWithoutID_isNotShown(t *testing.T) {
	b := byProject()
	b.Spec.ID = 0
	f := newForge(t, b)
	for _, path := range []string{"?search=trunk", "/trunk"} {
		if got := f.As("mary", "GET /projects/20/protected_branches"+path, ""); strings.Contains(got.Body, "trunk") {
			t.Errorf("got %s", got)
		}
	}
}
