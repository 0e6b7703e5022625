package e2e

import (
	"context"
	"encoding/base64"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/internal/accesstoken"
	"github.com/forgeplane/forgeplane/internal/triggertoken"
	"github.com/forgeplane/forgeplane/test/forgeplane"
	"github.com/forgeplane/forgeplane/test/terminal"
)

// credentials are all credentials that the specs have learned. Nobody else may learn them.
var credentials = map[string]bool{}

// token returns the value of an access token, which is kept in a Secret of the same name.
func token(name string) string {
	GinkgoHelper()
	var secret corev1.Secret
	Expect(api.Get(context.Background(), client.ObjectKey{Namespace: forgeplane.Namespace, Name: name}, &secret)).To(Succeed())
	value := string(secret.Data["token"])
	Expect(value).To(HavePrefix(accesstoken.Prefix))
	credentials[value] = true
	return value
}

// as returns the terminal of a user whose token is in a Secret of that name.
func as(username, secret string) terminal.Terminal {
	GinkgoHelper()
	return admin.As(username, token(secret))
}

// expectNoCredential expects that a text contains no credential, whether plain or encoded for HTTP and Secrets.
func expectNoCredential(where, text string) {
	GinkgoHelper()
	for _, prefix := range []string{accesstoken.Prefix, triggertoken.Prefix} {
		Expect(strings.Contains(text, prefix)).To(BeFalse(), "%s holds a generated token", where)
	}
	for value := range credentials {
		for _, form := range []string{value, base64.StdEncoding.EncodeToString([]byte(value))} {
			Expect(strings.Contains(text, form)).To(BeFalse(), "%s holds a credential", where)
		}
	}
}
