package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
)

func TestLogs_continueWhereTheyEnded(t *testing.T) {
	g := NewWithT(t)
	var sent []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, err := io.ReadAll(r.Body)
		sent = append(sent, fmt.Sprintln(r.Method, r.URL.Path, r.Header.Get("JOB-TOKEN"), r.Header.Get("Content-Range"), len(content), err))
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(server.Close)
	p := &pipelines{runners: server.Client()}
	dial := p.logs(server.URL, []job{{ID: 7, Token: "one"}})
	for range 2 {
		c, err := dial(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(c.Exchange(t.Context())).To(Equal(http.StatusAccepted))
		g.Expect(c.Close()).To(Succeed())
	}
	n := len(logPart)
	g.Expect(sent).To(Equal([]string{
		fmt.Sprintf("PATCH /api/v4/jobs/7/trace one 0-%d %d <nil>\n", n-1, n), fmt.Sprintf("PATCH /api/v4/jobs/7/trace one %d-%d %d <nil>\n", n, 2*n-1, n),
	}))
}
