package members_test

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	. "github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/credential"
)

// bot returns a token of a group of the namespace acme; of the project web if the group is empty.
func bot(id int64, group, name string, change ...func(*v1alpha1.BotTokenSpec)) *v1alpha1.BotToken {
	t := &v1alpha1.BotToken{
		ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: name},
		Spec:       v1alpha1.BotTokenSpec{ID: id, Name: name, Role: v1alpha1.RoleReporter, Digest: credential.Digest(name)},
		Status:     v1alpha1.BotTokenStatus{ID: id},
	}
	if group == "" {
		t.Spec.ProjectRef = &v1alpha1.Reference{Name: "web"}
	} else {
		t.Spec.GroupRef = &v1alpha1.Reference{Name: group}
	}
	for _, c := range change {
		c(&t.Spec)
	}
	return t
}

func TestListMembers_includesBots(t *testing.T) {
	until := func(month time.Month) func(*v1alpha1.BotTokenSpec) {
		return func(s *v1alpha1.BotTokenSpec) {
			s.ExpiresAt = &metav1.Time{Time: time.Date(2026, month, 1, 0, 0, 0, 0, time.UTC)}
		}
	}
	f := newForge(t, bot(32, "", "deployer", until(time.July)), bot(31, "", "expired", until(time.June)),
		bot(30, "", "revoked", func(s *v1alpha1.BotTokenSpec) { s.Revoked = true }), bot(33, "", "builder"),
		bot(34, "core", "cleaner"), bot(35, "acme", "auditor"))
	names := func(path string) (names []string) {
		for _, m := range Decode[[]struct{ Name string }](t, f.As("", "GET "+path, "")) {
			names = append(names, m.Name)
		}
		return names
	}
	g := NewWithT(t)
	g.Expect(names("/projects/20/members")).To(Equal([]string{"dora", "deployer", "builder"}))
	g.Expect(names("/projects/20/members/all")).To(Equal([]string{"mary", "dora", "olga", "gus", "deployer", "builder", "cleaner", "auditor"}))
	g.Expect(names("/projects/20/members/all?per_page=2&page=3")).To(Equal([]string{"deployer", "builder"}))
	g.Expect(names("/projects/20/members/all?query=project_20_bot")).To(Equal([]string{"deployer", "builder"}))
	g.Expect(names("/groups/11/members")).To(Equal([]string{"mary", "cleaner"}))
	g.Expect(names("/groups/11/members/all")).To(Equal([]string{"mary", "olga", "gus", "cleaner", "auditor"}))

	const deployer = "/4503599627370528"
	for _, path := range []string{"/projects/20/members", "/projects/20/members/all"} {
		g.Expect(f.As("", "GET "+path+deployer, "").Body).To(And(
			ContainSubstring(`"name":"deployer","state":"active"`), ContainSubstring(`"access_level":20,`), ContainSubstring(`"expires_at":"2026-07-01"`)))
	}
	g.Expect(f.As("olga", "PUT /projects/20/members"+deployer, `{"access_level":40}`).Code).To(Equal(http.StatusNotFound), "nothing is declared")
	g.Expect(f.As("olga", "DELETE /projects/20/members"+deployer, "").Code).To(Equal(http.StatusNotFound))
	g.Expect(f.As("olga", "POST /projects/20/members", `{"user_id":"4503599627370528","access_level":40}`).Code).To(Equal(http.StatusNotFound))
}
