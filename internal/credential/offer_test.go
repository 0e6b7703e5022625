package credential_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/credential"
)

func TestOrigin_isHostForHTTPSAndURLOtherwise(t *testing.T) {
	for text, want := range map[string]string{
		"git.example.com":                           "git.example.com",
		"GIT.example.com:443":                       "git.example.com",
		"git.example.com:8443":                      "git.example.com:8443",
		"https://git.example.com/acme/web.git":      "git.example.com",
		"https://git.example.com:443/a.git":         "git.example.com",
		"https://git.example.com:8443/a.git":        "git.example.com:8443",
		"http://git.example.com/a.git":              "http://git.example.com",
		"http://git.example.com:80":                 "http://git.example.com",
		"http://git.example.com:443":                "http://git.example.com:443",
		"https://[2001:DB8::1]:443/a.git":           "[2001:db8::1]",
		"https://ann:secret@git.example.com/a":      "git.example.com",
		"https://git.example.com@evil.example/a":    "evil.example",
		"https://evil.example/git.example.com":      "evil.example",
		"git.example.com.":                          "git.example.com.",
		"https://git.example.com.evil.example/":     "git.example.com.evil.example",
		"https://evil.example#git.example.com":      "evil.example",
		"https://evil.example?host=git.example.com": "evil.example",
	} {
		NewWithT(t).Expect(credential.Origin(text)).To(Equal(want), text)
	}
	for _, text := range []string{"", "https://", "://", "https://["} {
		_, err := credential.Origin(text)
		NewWithT(t).Expect(err).To(HaveOccurred(), text)
	}
}
