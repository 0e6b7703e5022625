package apiserver

import (
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/registryhttp"
)

func TestRegistry_isNotFoundIfItIsOff(t *testing.T) {
	toys := serveToys(t, Options{RuntimeDir: t.TempDir()}, endpoint.Table{})
	for _, path := range []string{registryhttp.TokenPath + "?service=container_registry", registryhttp.Prefix + "/", registryhttp.Prefix + "/acme/app/tags/list"} {
		t.Run(path, func(t *testing.T) {
			g := NewWithT(t)
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(toys.url, restPrefix)+path, http.NoBody)
			g.Expect(err).NotTo(HaveOccurred())
			answer, err := http.DefaultClient.Do(r)
			g.Expect(err).NotTo(HaveOccurred())
			defer func() { _ = answer.Body.Close() }()
			g.Expect(answer).To(HaveHTTPStatus(http.StatusNotFound))
			g.Expect(answer).To(HaveHTTPBody(MatchJSON(`{"errors":[{"code":"UNAVAILABLE","message":"registry not enabled"}],"http_status":404}`)))
		})
	}
}
