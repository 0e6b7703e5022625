package e2e

import (
	"io"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A project", Ordered, func() {
	var studio team

	BeforeAll(func() {
		studio = newTeam("studio")
		studio.start()
	})

	visibility := func(visibility string) {
		GinkgoHelper()
		studio.patch("project/app", `{"spec":{"visibility":"`+visibility+`"}}`)
	}

	It("that is private does not exist for users who are not members", func() {
		for name, token := range map[string]string{"nobody": "", "a stranger": token(studio.user("otto"))} {
			for _, service := range []string{"/info/refs?service=git-upload-pack", "/info/refs?service=git-receive-pack"} {
				Expect(answer(studio.url("app")+service, token)).To(Equal(answer(studio.url("nothing")+service, token)), name)
			}
		}
		Expect(studio.as("otto").Fail("git", "ls-remote", studio.url("app"))).
			To(ContainSubstring("remote: The project you were looking for could not be found or you don't have permission to view it."))
	})

	It("that is public can be read without credentials, but not written", func() {
		visibility("Public")
		expectAccepted("the project is public", func() (string, error) { return admin.Try("git", "ls-remote", studio.url("app")) })
		anybody := admin.As("anybody", "").Clone(studio.url("app"))
		anybody.Commit("change.txt", "Mine.\n")
		Expect(anybody.RefusedPush("mine")).To(ContainSubstring("could not read Username"))
		stranger := studio.as("otto").In(anybody.Dir)
		Expect(stranger.RefusedPush("mine")).To(ContainSubstring("remote: You are not allowed to push code to this project."))
	})

	It("that is internal can be read by every user, and by nobody else", func() {
		visibility("Internal")
		expectRefused("the project is internal", func() (string, error) { return admin.Try("git", "ls-remote", studio.url("app")) },
			"could not read Username")
		studio.as("otto").Git("ls-remote", studio.url("app"))
	})

	It("is never more visible than its group", func() {
		visibility("Public")
		studio.patch("group/studio", `{"spec":{"visibility":"Private"}}`)
		expectRefused("the group is private", func() (string, error) { return admin.Try("git", "ls-remote", studio.url("app")) },
			"could not read Username")
		studio.waitReady("project/app")
		studio.wait("project/app", "{.status.visibility}", "Private")
	})

	It("that is read-only accepts no push, and says when to try again", func() {
		try := pushOf(studio.clone("dana"), "busy")
		Expect(try()).Error().NotTo(HaveOccurred())
		studio.patch("project/app", `{"spec":{"readOnly":true}}`)
		// The documentation of the interface specifies this text.
		expectRefused("the project is read-only", try, "The repository is temporarily read-only. Please try again later.")
		studio.clone("dana")
		studio.patch("project/app", `{"spec":{"readOnly":false}}`)
		expectAccepted("the project is no longer read-only", try)
	})

	It("that is archived accepts no push", func() {
		try := pushOf(studio.clone("dana"), "late")
		Expect(try()).Error().NotTo(HaveOccurred())
		studio.patch("project/app", `{"spec":{"archived":true}}`)
		expectRefused("the project is archived", try, "This project is archived, so nothing can be pushed to it.")
		studio.clone("dana")
		studio.patch("project/app", `{"spec":{"archived":false}}`)
		expectAccepted("the project is no longer archived", try)
	})

	It("moves when the project or its group is renamed", func() {
		dana := studio.clone("dana")
		renamed := func(object, path, from, to string) {
			GinkgoHelper()
			studio.patch(object, `{"spec":{"path":"`+path+`"}}`)
			from, to = admin.Getenv("FORGEPLANE_URL")+from, admin.Getenv("FORGEPLANE_URL")+to
			expectAccepted(object+" is renamed", func() (string, error) { return dana.Try("git", "ls-remote", to) })
			Expect(dana.Fail("git", "ls-remote", from)).To(ContainSubstring("could not be found"))
			dana.Git("remote", "set-url", "origin", to)
			Expect(pushOf(dana, path)()).Error().NotTo(HaveOccurred())
		}
		repository := repositoryOf("studio", "app")
		renamed("project/app", "product", "/studio/app.git", "/studio/product.git")
		renamed("group/studio", "atelier", "/studio/product.git", "/atelier/product.git")
		studio.waitReady("group", "project", "membership", "protectedbranch")
		Expect(studio.show("project/app", "{.status.fullPath}")).To(Equal("atelier/product"))
		Expect(repositoryOf("studio", "app")).To(Equal(repository), "nothing is moved on disk")
	})
})

// response is everything by which a client can tell answers apart, except the date.
type response struct {
	status int
	header http.Header
	body   string
}

// answer requests an address with a token as the password, or without credentials if the token is empty.
func answer(url, token string) response {
	GinkgoHelper()
	request, err := http.NewRequest(http.MethodGet, url, http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	if token != "" {
		request.SetBasicAuth("somebody", token)
	}
	client := http.Client{Timeout: 10 * time.Second}
	got, err := client.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = got.Body.Close() }()
	body, err := io.ReadAll(got.Body)
	Expect(err).NotTo(HaveOccurred())
	got.Header.Del("Date")
	return response{got.StatusCode, got.Header, strings.TrimSpace(string(body))}
}
