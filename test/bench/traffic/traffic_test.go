package traffic

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestRun_usesEveryConnectionUntilTheEnd(t *testing.T) {
	g := NewWithT(t)
	var served atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		if r.Header.Get("PRIVATE-TOKEN") != "secret" || r.URL.RequestURI() != "/a%2Fb?c=d" {
			w.WriteHeader(http.StatusBadRequest)
		}
		_, _ = w.Write([]byte(strings.Repeat("x", 10_000)))
	}))
	defer server.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/a%2Fb?c=d", http.NoBody)
	g.Expect(err).NotTo(HaveOccurred())
	request.Header.Set("PRIVATE-TOKEN", "secret")
	for _, dial := range []Dial{Plain(request), Through(server.Client(), request)} {
		served.Store(0)
		r, err := Run(t.Context(), dial, 4, 100*time.Millisecond)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(r.Times).To(HaveLen(int(served.Load())))
		g.Expect(len(r.Times)).To(BeNumerically(">", 4))
		g.Expect(r.Rate).To(BeNumerically(">", 0))
		g.Expect(r.Quantile(0.5)).To(BeNumerically("<=", r.Quantile(0.99)))
		g.Expect(r.Quantile(1)).To(Equal(r.Times[len(r.Times)-1]))
	}
}

func TestRun_failsIfARequestFails(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = Run(t.Context(), Plain(request), 2, time.Second)
	g.Expect(err).To(MatchError(ContainSubstring("404")))
}
