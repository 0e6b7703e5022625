package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/terminal"
)

const notValid = "remote: The access token is not valid: it may be unknown, expired or revoked."

var _ = Describe("A token", Ordered, func() {
	var office team

	BeforeAll(func() {
		office = newTeam("office")
		office.start()
	})

	// another declares another token of Dana, and returns a work tree that pushes with it.
	another := func(name string, scopes ...string) terminal.Terminal {
		GinkgoHelper()
		name = office.user(name)
		office.apply(fmt.Sprintf(`
apiVersion: forgeplane.dev/v1alpha1
kind: AccessToken
metadata: {name: %s}
spec: {userRef: {name: TEAM-dana}, scopes: [%s], secretRef: {name: %[1]s}}
`, name, strings.Join(scopes, ", ")))
		waitReady("", "accesstoken/"+name)
		return as(office.user("dana"), name).In(office.clone("dana").Dir)
	}
	listing := func(t terminal.Terminal) command {
		return func() (string, error) { return t.Try("git", "ls-remote", "origin") }
	}

	It("is refused within a second of its revocation", func() {
		dana := another("revoked", "write_repository")
		try := pushOf(dana, "revoked")
		Expect(try()).Error().NotTo(HaveOccurred())
		patch("", "accesstoken/"+office.user("revoked"), `{"spec":{"revoked":true}}`)
		expectRefused("the token is revoked", try, notValid)
		wait("", "accesstoken/"+office.user("revoked"), reason, "Revoked")
	})

	It("is refused within a second of its deletion, and its Secret is deleted with it", func() {
		dana := another("deleted", "write_repository")
		Expect(listing(dana)()).Error().NotTo(HaveOccurred())
		admin.Kubectl("delete", "accesstoken", office.user("deleted"))
		expectRefused("the token is deleted", listing(dana), notValid)
		admin.Kubectl("wait", "--for=delete", "--timeout=30s", "--namespace=forgeplane-system", "secret/"+office.user("deleted"))
	})

	It("is refused from its expiry on", func() {
		dana := another("expiring", "write_repository")
		Expect(listing(dana)()).Error().NotTo(HaveOccurred())
		expiry := time.Now().Add(2 * time.Second).Truncate(time.Second)
		patch("", "accesstoken/"+office.user("expiring"), fmt.Sprintf(`{"spec":{"expiresAt":%q}}`, expiry.UTC().Format(time.RFC3339)))
		Eventually(func() error {
			_, err := listing(dana)()
			return err
		}).WithPolling(polling).Should(HaveOccurred())
		Expect(time.Now()).To(BeTemporally(">=", expiry), "not before")
		Expect(dana.Fail("git", "ls-remote", "origin")).To(ContainSubstring(notValid))
		wait("", "accesstoken/"+office.user("expiring"), reason, "Expired")
	})

	It("that is unknown is refused, even for a public project", func() {
		otto := admin.As("otto", "fpat-nobody-has-ever-seen-this-one")
		Expect(otto.Fail("git", "ls-remote", office.url("app"))).To(ContainSubstring(notValid))
		public := answer(admin.Getenv("FORGEPLANE_URL")+"/forgeplane/forgeplane.git/info/refs?service=git-upload-pack", "fpat-nor-this-one")
		Expect(public.status).To(Equal(http.StatusUnauthorized))
	})

	DescribeTable("allows what its scopes allow", func(scope string, fetches, pushes bool) {
		dana := another(strings.ReplaceAll(scope, "_", "-"), scope)
		screen, err := dana.Try("git", "fetch")
		if fetches {
			Expect(err).NotTo(HaveOccurred(), screen)
		} else {
			Expect(screen).To(ContainSubstring("remote: The access token lacks a scope: to fetch it needs read_repository, write_repository or api."))
		}
		dana.Commit("scope.txt", scope)
		screen, err = dana.Push(scope)
		if pushes {
			Expect(err).NotTo(HaveOccurred(), screen)
		} else {
			Expect(screen).To(ContainSubstring("remote: The access token lacks a scope: to push it needs write_repository or api."))
		}
	},
		Entry("api", "api", true, true),
		Entry("write_repository", "write_repository", true, true),
		Entry("read_repository", "read_repository", true, false),
		Entry("read_api", "read_api", false, false),
	)

	It("is refused while its user is blocked, and accepted again afterwards", func() {
		try := pushOf(office.clone("dana"), "blocked")
		Expect(try()).Error().NotTo(HaveOccurred())
		state := func(state string) {
			GinkgoHelper()
			patch("", "user/"+office.user("dana"), fmt.Sprintf(`{"spec":{"state":%q}}`, state))
		}
		state("Blocked")
		expectRefused("the user is blocked", try, "remote: Your account has been blocked.")
		state("Active")
		expectAccepted("the user is active again", try)
	})
})
