package claim_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/claim"
)

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// group returns a group that was created age seconds after began.
func group(name string, age int, change ...func(*v1alpha1.Group)) *v1alpha1.Group {
	g := &v1alpha1.Group{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID(name), CreationTimestamp: metav1.Time{Time: began.Add(time.Duration(age) * time.Second)},
	}, Spec: v1alpha1.GroupSpec{Path: "Acme"}}
	for _, c := range change {
		c(g)
	}
	return g
}

var acme = claim.Path("", "acme")

func showing(claims ...claim.Claim) func(*v1alpha1.Group) {
	return func(g *v1alpha1.Group) {
		for _, c := range claims {
			g.Status.Claims = append(g.Status.Claims, c.String())
		}
	}
}

func leaving(g *v1alpha1.Group) {
	g.DeletionTimestamp = &metav1.Time{Time: began}
}

func TestHolder(t *testing.T) {
	other := claim.Path("uid", "acme")
	tests := map[string]struct {
		claimants []*v1alpha1.Group
		want      string
	}{
		"nobody":                                                {nil, ""},
		"the only one":                                          {[]*v1alpha1.Group{group("a", 1)}, "a"},
		"the only one, being deleted":                           {[]*v1alpha1.Group{group("a", 1, leaving)}, "a"},
		"the older one while nobody holds it":                   {[]*v1alpha1.Group{group("b", 2), group("a", 1)}, "a"},
		"the smaller UID of one second":                         {[]*v1alpha1.Group{group("b", 1), group("a", 1)}, "a"},
		"the one that shows it":                                 {[]*v1alpha1.Group{group("a", 1), group("b", 2, showing(acme))}, "b"},
		"the one that shows it, being deleted":                  {[]*v1alpha1.Group{group("a", 1), group("b", 2, showing(acme), leaving)}, "b"},
		"not one that shows another claim":                      {[]*v1alpha1.Group{group("a", 1), group("b", 2, showing(other))}, "a"},
		"nothing new for one that is being deleted":             {[]*v1alpha1.Group{group("a", 1, leaving), group("b", 2)}, "b"},
		"the one of two that show it that is not being deleted": {[]*v1alpha1.Group{group("a", 1, showing(acme), leaving), group("b", 2, showing(acme))}, "b"},
		"the older one of two that show it":                     {[]*v1alpha1.Group{group("b", 2, showing(acme)), group("a", 1, showing(acme))}, "a"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			holder := claim.Holder(tt.claimants, acme)
			if tt.want == "" {
				g.Expect(holder).To(BeNil())
				return
			}
			g.Expect(holder.Name).To(Equal(tt.want))
		})
	}
}

func TestOlder_isFalseForTheSameObject(t *testing.T) {
	if a := group("a", 1); claim.Older(a, a) {
		t.Error("an object is older than itself")
	}
}

func TestHolderOfID(t *testing.T) {
	pinned := func(status int64) func(*v1alpha1.Group) {
		return func(g *v1alpha1.Group) { g.Spec.ID, g.Status.ID = 7, status }
	}
	dropped := func(g *v1alpha1.Group) { g.Status.ID = 7 }
	tests := map[string]struct {
		claimants []*v1alpha1.Group
		want      string
	}{
		"the one in force":                        {[]*v1alpha1.Group{group("a", 1, pinned(0)), group("b", 2, pinned(7))}, "b"},
		"the one in force, being deleted":         {[]*v1alpha1.Group{group("a", 1, pinned(0)), group("b", 2, pinned(7), leaving)}, "b"},
		"the one whose spec lost it in a replace": {[]*v1alpha1.Group{group("a", 1, pinned(0)), group("b", 2, dropped)}, "b"},
		"the older one while nobody has it":       {[]*v1alpha1.Group{group("b", 2, pinned(0)), group("a", 1, pinned(0))}, "a"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(claim.HolderOfID(tt.claimants, 7).Name).To(Equal(tt.want))
		})
	}
}

func TestCanonicalForm(t *testing.T) {
	g := NewWithT(t)
	all := map[string]claim.Claim{
		"path//acme":               claim.Path("", "ACME"),
		"path/u1/web":              claim.Path("u1", "Web"),
		"username//ada":            claim.Username("Ada"),
		"email//ada@example.com":   claim.Email("Ada@Example.com"),
		"kubernetes//system:Ada":   claim.Kubernetes("system:Ada"),
		"membership/u1/u2":         claim.Membership("u1", "u2"),
		"label/u1/a/b":             claim.Label("u1", "a/b"),
		"protection/u1/release/*":  claim.Protection("u1", "release/*"),
		"defaultprotection/u1/a":   claim.DefaultProtection("u1", "a"),
		"jobtokenscope/u1/":        claim.JobTokenScope("u1"),
		"deploykey/u1/SHA256:a/b":  claim.DeployKey("u1", "SHA256:a/b"),
		"tokensecret/team/ci/key":  claim.TokenSecret("team", "ci", "key"),
		"tokenvalue//0123":         claim.TokenValue("0123"),
		"variable/u1/A/review/*":   claim.Variable("u1", "A", "review/*"),
		"variable//A/*":            claim.Variable("", "A", "*"),
		"directory///srv/git":      claim.Directory("/srv/git"),
		"label/u1/" + long("é", 9): claim.Label("u1", long("é", 9)),
	}
	for text, c := range all {
		g.Expect(c.String()).To(Equal(text))
		for other, d := range all {
			g.Expect(d.In([]string{"", "path", other + "x", text})).To(Equal(text == other), "%s and %s", text, other)
		}
	}
}

func long(s string, n int) string { return strings.Repeat(s, n) }

func TestShownBy_doesNotAllocate(t *testing.T) {
	shown := group("a", 1, showing(claim.Path("u1", "web"), acme))
	NewWithT(t).Expect(testing.AllocsPerRun(100, func() {
		if !claim.Path("", "acme").ShownBy(shown) {
			t.Error("it is not shown")
		}
	})).To(BeZero())
}
