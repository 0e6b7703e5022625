package apiserver

import (
	"context"
	"net"
	"net/http"
	"testing"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/apiserver/family"
)

func TestListener_logsWhatTheHTTPServerLogs(t *testing.T) {
	g := NewWithT(t)
	lines := make(chan string, 1)
	log := funcr.NewJSON(func(line string) { lines <- line }, funcr.Options{})
	clients, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	s := newListener(Options{Log: log, Kit: family.Kit{Clock: clock.RealClock{}}})
	s.handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a mistake") })
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.serve(ctx, clients) }()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+clients.Addr().String(), http.NoBody)
	g.Expect(err).NotTo(HaveOccurred())
	if answer, err := http.DefaultClient.Do(r); err == nil {
		_ = answer.Body.Close()
		t.Error("a panic was answered")
	}
	stop()
	g.Expect(<-ended).To(Succeed())
	g.Expect(<-lines).To(And(HavePrefix("{"), ContainSubstring("http: panic serving"), ContainSubstring(`"error":null`)))
}
