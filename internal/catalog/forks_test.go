package catalog_test

import (
	"testing"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

func TestOrigin_followsWhatIsDeclared(t *testing.T) {
	ref := func(name string, id int64, uid string) v1alpha1.Reference {
		return v1alpha1.Reference{Name: name, ID: id, UID: uid}
	}
	declared := func(r v1alpha1.Reference) *v1alpha1.ForkOf { return &v1alpha1.ForkOf{ProjectRef: r} }
	recorded := func(r v1alpha1.Reference, id int64) *v1alpha1.ForkedFrom {
		return &v1alpha1.ForkedFrom{ProjectRef: r, ID: id}
	}
	for about, tt := range map[string]struct {
		of   *v1alpha1.ForkOf
		from *v1alpha1.ForkedFrom
		want v1alpha1.Reference
	}{
		"neither":                    {},
		"recorded only":              {nil, recorded(ref("web", 0, "u"), 7), v1alpha1.Reference{}},
		"by id and uid":              {declared(ref("", 7, "u")), nil, ref("", 7, "u")},
		"not recorded yet":           {declared(ref("web", 0, "")), nil, v1alpha1.Reference{}},
		"recorded by name":           {declared(ref("web", 0, "")), recorded(ref("web", 0, "u"), 7), ref("", 7, "u")},
		"recorded by name, with uid": {declared(ref("web", 0, "u")), recorded(ref("web", 0, "u"), 7), ref("", 7, "u")},
		"recorded for another name":  {declared(ref("other", 0, "")), recorded(ref("web", 0, "u"), 7), v1alpha1.Reference{}},
		"recorded for another uid":   {declared(ref("web", 0, "v")), recorded(ref("web", 0, "u"), 7), v1alpha1.Reference{}},
	} {
		p := &v1alpha1.Project{Spec: v1alpha1.ProjectSpec{ForkOf: tt.of}, Status: v1alpha1.ProjectStatus{ForkedFrom: tt.from}}
		got, ok := p.Origin()
		if got != tt.want || ok != (tt.want != v1alpha1.Reference{}) {
			t.Errorf("%s: got %+v, %t", about, got, ok)
		}
	}
}
