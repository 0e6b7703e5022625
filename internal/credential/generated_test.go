package credential_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/credential"
)

func TestGenerated_excludesValuesOfUsers(t *testing.T) {
	g := NewWithT(t)
	s := &corev1.Secret{Data: map[string][]byte{"own": []byte("a value of the user")}}
	credential.Generate(s, "a", "uid-of-a", "generated for a")
	credential.Generate(s, "b.c-d_e", "uid-of-b", "generated for b")
	g.Expect(credential.GeneratedIn(s)).To(ConsistOf(
		And(HaveField("Key", "a"), HaveField("For", BeEquivalentTo("uid-of-a"))),
		And(HaveField("Key", "b.c-d_e"), HaveField("For", BeEquivalentTo("uid-of-b")))))
	g.Expect(credential.IsGenerated(s, "own")).To(BeFalse())
	g.Expect(s.Annotations[v1alpha1.AnnotationGenerated]).NotTo(ContainSubstring("generated for"))

	s.Data["a"] = []byte("chosen by the user since")
	g.Expect(credential.IsGenerated(s, "a")).To(BeFalse())
	credential.Generate(s, "b.c-d_e", "uid-of-another", "generated again")
	g.Expect(credential.GeneratedIn(s)).To(ConsistOf(HaveField("For", BeEquivalentTo("uid-of-another"))))
	credential.Remove(s, "b.c-d_e")
	g.Expect(s.Data).To(Equal(map[string][]byte{"own": []byte("a value of the user"), "a": []byte("chosen by the user since")}))
	g.Expect(s.Annotations).To(BeEmpty())
}
