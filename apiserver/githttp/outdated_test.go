package githttp_test

import (
	"context"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/apiserver/githttp"
	"github.com/forgeplane/forgeplane/internal/role"
	"github.com/forgeplane/forgeplane/internal/watermark"
)

const advertised = "/acme/web.git/info/refs?service=git-upload-pack"

func TestOutdated_makesServerRetryBeforeRefusal(t *testing.T) {
	g := NewWithT(t)
	asked := 0
	var f *forge
	learn := func() {}
	f = newForge(t, func(o *githttp.Options) {
		o.Outdated = func(context.Context) (bool, error) {
			asked++
			f.set(learn)
			return true, nil
		}
	})
	p := f.add(t, "acme/web", "sha1")
	status := func(user string) int {
		answer, _ := f.do(t, http.MethodGet, advertised, user, nil, "")
		return answer.StatusCode
	}
	g.Expect(status(developer)).To(Equal(http.StatusOK))
	answer, _ := f.do(t, http.MethodGet, "/acme/web.git/info/refs?service=git-receive-pack", "", nil, "")
	g.Expect(answer.StatusCode).To(Equal(http.StatusUnauthorized), "a push needs a token")
	g.Expect(asked).To(BeZero())

	learn = func() { p.roles[userIDs[stranger]] = role.Reporter }
	g.Expect(status(stranger)).To(Equal(http.StatusOK), "the membership was made elsewhere")
	learn = func() { f.tokens["new"] = f.tokens[developer] }
	g.Expect(status("new")).To(Equal(http.StatusOK), "the token was made elsewhere")
	learn = func() { p.roles[userIDs[guest]] = role.Reporter }
	g.Expect(status(guest)).To(Equal(http.StatusOK), "the role was raised elsewhere")
	g.Expect(asked).To(Equal(3))
	learn = func() {}
	g.Expect(status("nobody's")).To(Equal(http.StatusUnauthorized))
	g.Expect(status("")).To(Equal(http.StatusUnauthorized))
	g.Expect(asked).To(Equal(5))
	learn = func() { p.public = true }
	g.Expect(status("")).To(Equal(http.StatusOK), "the project was made public elsewhere")
}

func TestOutdated_answers503WhileTheServerIsBehind(t *testing.T) {
	g := NewWithT(t)
	option, lines := logged()
	f := newForge(t, option, func(o *githttp.Options) {
		o.Outdated = func(context.Context) (bool, error) { return false, watermark.ErrBehind }
	})
	f.add(t, "acme/web", "sha1")
	for _, user := range []string{stranger, ""} {
		answer, text := f.do(t, http.MethodGet, advertised, user, nil, "")
		g.Expect(answer.StatusCode).To(Equal(http.StatusServiceUnavailable), user)
		g.Expect(answer.Header.Get("Retry-After")).To(Equal("10"))
		g.Expect(text).To(Equal(watermark.Behind + "\n"))
	}
	g.Expect(lines()).To(BeEmpty(), "anybody could fill the log")
}

func TestPendingRepository_tellsClientsToRetry(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	p := f.add(t, "acme/web", "sha1")
	p.openErr = githttp.ErrPending
	answer, text := f.do(t, http.MethodGet, advertised, developer, nil, "")
	g.Expect(answer.StatusCode).To(Equal(http.StatusServiceUnavailable))
	g.Expect(answer.Header.Get("Retry-After")).To(Equal("10"))
	g.Expect(text).To(Equal("The repository of this project is still being created. Please try again later.\n"))
}
