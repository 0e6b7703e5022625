package bottoken_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/forge"
	"github.com/forgeplane/forgeplane/test/suite"
)

var (
	cluster *forge.Cluster
	f       *forge.Forge
	// acme and website are a group and a project of a team.
	acme    *v1alpha1.Group
	website *v1alpha1.Project
)

func TestBotToken(t *testing.T) {
	suite.Run(t, "BotToken")
}

var (
	_ = BeforeSuite(func() { cluster = forge.StartCluster() })
	_ = BeforeEach(func() {
		f = forge.New(cluster, forge.Options{})
		acme = forge.Group("acme").In(f.NewNamespace()).Build()
		website = forge.Project("website").In(acme).ID(7).Build()
		f.Create(acme, website)
	})
)

// offered returns a Secret of the team with one key, for use by a token. Without a value, the Secret is empty.
func offered(name, key, value string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: acme.Namespace, Name: name, Labels: map[string]string{v1alpha1.LabelSecret: v1alpha1.SecretOfBotToken},
	}}
	if value != "" {
		s.Data = map[string][]byte{key: []byte(value)}
	}
	return s
}

// valueOf returns what the Secret of a token has under its key.
func valueOf(t *v1alpha1.BotToken) string {
	GinkgoHelper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: t.Spec.SecretRef.Name}}
	f.Refresh(s)
	return string(s.Data[t.Spec.SecretRef.Key])
}
