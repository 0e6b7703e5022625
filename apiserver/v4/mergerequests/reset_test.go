package mergerequests_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

func TestApprovals_areResetByBots(t *testing.T) {
	w := newApprovalWorld(t)
	const reset = "PUT " + underApproval + "/reset_approvals"
	bot := func(name, value string, role v1alpha1.Role, id int64) {
		w.g.Expect(w.Client.Create(t.Context(), &v1alpha1.BotToken{
			ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: name},
			Spec: v1alpha1.BotTokenSpec{
				ID: id, ProjectRef: &v1alpha1.Reference{Name: "web"}, Name: name, Role: role, Scopes: []v1alpha1.TokenScope{v1alpha1.ScopeAPI},
				Digest: credential.Digest(value),
			},
		})).To(Succeed())
	}
	bot("robot", "the-value-of-the-robot", v1alpha1.RoleDeveloper, 70)
	bot("guest", "the-value-of-the-guest", v1alpha1.RoleGuest, 71)
	w.g.Expect(w.approve("dan")).To(Equal(201))
	for _, as := range []string{"", "dan", "root", "rick"} {
		w.g.Expect(w.As(as, reset, "").String()).To(Equal(unauthorized), as)
	}
	w.g.Expect(w.With("the-value-of-the-guest", reset, "").String()).To(Equal(unauthorized))
	w.g.Expect(w.approvals("").ApprovedBy).To(HaveLen(1))
	w.g.Expect(w.With("the-value-of-the-robot", reset, "").Code).To(Equal(202))
	w.g.Expect(w.approvals("").ApprovedBy).To(BeEmpty())
	w.change(func(m *mergerequest.MergeRequest) { m.State = mergerequest.Merged })
	w.g.Expect(w.With("the-value-of-the-robot", reset, "").String()).To(Equal(unauthorized))
}
