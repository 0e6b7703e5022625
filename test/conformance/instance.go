package conformance

import (
	"io"
	"net/http"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
)

var _ = throughEachDoor("The instance", func(d *door) {
	It("shows its version and the caller", func() {
		c := d.as(developer)
		version, _, err := c.Version.GetVersion()
		Expect(err).NotTo(HaveOccurred())
		Expect(version.Version).To(Equal("16.5.0-ee"))
		Expect(version.Revision).NotTo(BeEmpty())

		metadata, _, err := c.Metadata.GetMetadata()
		Expect(err).NotTo(HaveOccurred())
		Expect(metadata.Version).To(Equal(version.Version))
		Expect(metadata.Revision).To(Equal(version.Revision))
		Expect(metadata.Enterprise).To(BeTrue())
		Expect(metadata.KAS.Enabled).To(BeFalse())

		me, _, err := c.Users.CurrentUser()
		Expect(err).NotTo(HaveOccurred())
		Expect(me.ID).To(Equal(developer.id))
		Expect(me.Username).To(Equal("developer"))
		Expect(me.Name).To(Equal("Called developer"))
		Expect(me.Email).To(Equal("developer@example.com"))
		Expect(me.State).To(Equal("active"))
		Expect(me.WebURL).To(Equal(own.url + "/developer"))
		Expect(me.IsAdmin).To(BeFalse())
		Expect(me.CanCreateProject).To(BeTrue())
		Expect(me.CreatedAt.IsZero()).To(BeFalse())
	})

	It("answers with the headers that clients and browsers need", func() {
		_, r, err := d.as(root).Users.CurrentUser()
		Expect(err).NotTo(HaveOccurred())
		for name, value := range map[string]string{
			"Content-Type": "application/json", "X-Frame-Options": "SAMEORIGIN", "X-Content-Type-Options": "nosniff",
		} {
			Expect(r.Header.Values(name)).To(Equal([]string{value}), name)
		}
		// kube-apiserver adds its own values to these.
		Expect(r.Header.Values("Cache-Control")).To(ContainElement("max-age=0, private, must-revalidate"))
		Expect(r.Header.Values("Vary")).To(ContainElement(ContainSubstring("Origin")))
		Expect(r.Header.Get("X-Request-Id")).NotTo(BeEmpty())
		Expect(r.Header.Get("X-Gitlab-Meta")).To(MatchJSON(`{"correlation_id":"` + r.Header.Get("X-Request-Id") + `","version":"1"}`))
		Expect(r.Header.Get("ETag")).To(HavePrefix(`W/"`))
		again := send(d.as(root), "GET user", "", gitlab.WithHeader("If-None-Match", r.Header.Get("ETag")))
		Expect(answered(again)).To(Equal("304"))
	})
})

var _ = Describe("A browser", func() {
	It("finds a page at the address of the installation and of the groups and projects that it can see, and Git below them", func() {
		public, private := own.newTeam(gitlab.PublicVisibility), own.newTeam(gitlab.PrivateVisibility)
		shown := public.project
		page := func(url string) (int, string, string) {
			r, err := http.Get(url)
			Expect(err).NotTo(HaveOccurred())
			defer r.Body.Close()
			text, err := io.ReadAll(r.Body)
			Expect(err).NotTo(HaveOccurred())
			return r.StatusCode, r.Header.Get("Content-Type"), string(text)
		}
		const html = "text/html; charset=utf-8"
		status, kind, text := page(own.url + "/")
		Expect([]any{status, kind}).To(Equal([]any{http.StatusOK, html}))
		Expect(text).To(ContainSubstring(own.url + "/-/docs"))
		status, kind, text = page(shown.WebURL)
		Expect([]any{status, kind}).To(Equal([]any{http.StatusOK, html}))
		Expect(text).To(And(ContainSubstring(shown.Name), ContainSubstring(shown.HTTPURLToRepo)))
		status, kind, missing := page(shown.WebURL + "-none")
		Expect([]any{status, kind}).To(Equal([]any{http.StatusNotFound, html}))
		for _, hidden := range []string{private.project.WebURL, private.group.WebURL} {
			status, _, text = page(hidden)
			Expect([]any{status, text}).To(Equal([]any{http.StatusNotFound, missing}), hidden)
		}
		status, _, text = page(public.group.WebURL)
		Expect(status).To(Equal(http.StatusOK))
		Expect(text).To(ContainSubstring(public.group.Name))
		status, kind, _ = page(shown.HTTPURLToRepo + "/info/refs?service=git-upload-pack")
		Expect([]any{status, kind}).To(Equal([]any{http.StatusOK, "application/x-git-upload-pack-advertisement"}))
	})
})

// parameter is a parameter in the path of an endpoint.
var parameter = regexp.MustCompile(`\{[^}]*\}`)

var _ = Describe("A caller that RBAC does not admit", func() {
	It("is refused by kube-apiserver at every endpoint, whatever token the request has", func() {
		stranger := &person{name: "stranger"}
		stranger.identify("strangers")
		for _, endpoint := range kubernetes.coverage.all {
			method, path, _ := strings.Cut(endpoint, " ")
			for _, token := range []string{"", root.token} {
				request, err := http.NewRequest(method, kubernetes.url+parameter.ReplaceAllString(path, "1"), http.NoBody)
				Expect(err).NotTo(HaveOccurred())
				request.Header.Set("PRIVATE-TOKEN", token)
				answer, err := through(stranger).RoundTrip(request)
				Expect(err).NotTo(HaveOccurred())
				Expect(answer.Body.Close()).To(Succeed())
				Expect(answer).To(HaveHTTPStatus(http.StatusForbidden), endpoint)
			}
		}
	})
})
