package quota_test

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	"github.com/forgeplane/forgeplane/internal/quota"
)

func TestAdmit_limitsEachKindOfSetting(t *testing.T) {
	for want, o := range settings(v1alpha1.Reference{Name: "web"}, v1alpha1.Reference{Name: "acme"}) {
		w, q := one(t)
		o.SetNamespace("acme")
		o.SetName("first")
		done, err := q.Admit(t.Context(), o)
		if err != nil {
			t.Errorf("%T: the first one: %v", o, err)
			continue
		}
		w.Put(o)
		done()
		_, err = q.Admit(t.Context(), o)
		var exceeded *quota.Exceeded
		if !errors.As(err, &exceeded) || err.Error() != want+". Remove some that are no longer needed, or ask an administrator for a higher limit." {
			t.Errorf("%T: got %v, want %s", o, err, want)
		}
	}
}

func TestAdmit_ignoresObjectsOfOtherNamespaces(t *testing.T) {
	for how, refs := range map[string]struct{ project, group v1alpha1.Reference }{
		"path": {v1alpha1.Reference{Path: "team/app"}, v1alpha1.Reference{Path: "team"}},
		"id":   {v1alpha1.Reference{ID: 7}, v1alpha1.Reference{ID: 5}},
	} {
		own := settings(v1alpha1.Reference{Name: "web"}, v1alpha1.Reference{Name: "acme"})
		for of, foreign := range settings(refs.project, refs.group) {
			w, q := one(t)
			foreign.SetNamespace("others")
			foreign.SetName("foreign")
			w.Put(foreign)
			own[of].SetNamespace("acme")
			if _, err := q.Admit(t.Context(), own[of]); err != nil {
				t.Errorf("%T that names it by %s: %v", foreign, how, err)
			}
		}
	}
}

// one returns a world with a project and a group in the namespace acme, which can have one setting of each kind.
func one(t *testing.T) (*catalogtest.World, *quota.Quota) {
	t.Helper()
	w := catalogtest.New(t,
		&v1alpha1.Group{ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "acme"}, Spec: v1alpha1.GroupSpec{ID: 5, Path: "team"}},
		&v1alpha1.Project{
			ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "web"},
			Spec:       v1alpha1.ProjectSpec{ID: 7, Path: "app", GroupRef: v1alpha1.Reference{Name: "acme"}},
		},
	)
	return w, quota.New(w.Catalog(), clocktesting.NewFakePassiveClock(time.Time{}), quota.Limits{Settings: 1}, "home")
}

// settings returns an object of each kind for a project or group, by the beginning of the error for one object too many.
func settings(project, group v1alpha1.Reference) map[string]client.Object {
	user := v1alpha1.Reference{Name: "ada"}
	const web, acme = "The project app has 1 of 1 ", "The group team has 1 of 1 "
	return map[string]client.Object{
		web + "labels":              &v1alpha1.Label{Spec: v1alpha1.LabelSpec{Title: "bug", ProjectRef: &project}},
		acme + "labels":             &v1alpha1.Label{Spec: v1alpha1.LabelSpec{Title: "bug", GroupRef: &group}},
		web + "badges":              &v1alpha1.Badge{Spec: v1alpha1.BadgeSpec{ProjectRef: &project}},
		acme + "badges":             &v1alpha1.Badge{Spec: v1alpha1.BadgeSpec{GroupRef: &group}},
		web + "protected branches":  &v1alpha1.ProtectedBranch{Spec: v1alpha1.ProtectedBranchSpec{Branch: "main", ProjectRef: &project}},
		acme + "protected branches": &v1alpha1.ProtectedBranch{Spec: v1alpha1.ProtectedBranchSpec{Branch: "main", GroupRef: &group}},
		web + "members":             &v1alpha1.Membership{Spec: v1alpha1.MembershipSpec{UserRef: user, ProjectRef: &project}},
		acme + "members":            &v1alpha1.Membership{Spec: v1alpha1.MembershipSpec{UserRef: user, GroupRef: &group}},
		web + "trigger tokens":      &v1alpha1.TriggerToken{Spec: v1alpha1.TriggerTokenSpec{ProjectRef: project}},
		web + "deploy keys":         &v1alpha1.DeployKey{Spec: v1alpha1.DeployKeySpec{ProjectRef: project}},
		web + "variables":           &v1alpha1.Variable{Spec: v1alpha1.VariableSpec{Key: "A", EnvironmentScope: "*", ProjectRef: &project}},
		acme + "variables":          &v1alpha1.Variable{Spec: v1alpha1.VariableSpec{Key: "A", EnvironmentScope: "*", GroupRef: &group}},
		web + "remote mirrors":      &v1alpha1.RemoteMirror{Spec: v1alpha1.RemoteMirrorSpec{ProjectRef: project}},
	}
}
