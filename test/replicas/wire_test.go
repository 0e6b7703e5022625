package replicas

import (
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// wire is a connection to a server with a configurable delay for the data that comes back.
type wire struct {
	listener net.Listener
	to       string
	delay    atomic.Int64
	wait     sync.WaitGroup
}

// newWire returns a wire to the address of a URL. It ends with the suite.
func newWire(to string) *wire {
	GinkgoHelper()
	target, err := url.Parse(to)
	Expect(err).NotTo(HaveOccurred())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	w := &wire{listener: listener, to: target.Host}
	w.wait.Go(w.serve)
	DeferCleanup(func() {
		_ = listener.Close()
		w.wait.Wait()
	})
	return w
}

// lead makes a kubeconfig file use the wire.
func (w *wire) lead(kubeconfig string) {
	GinkgoHelper()
	text, err := os.ReadFile(kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	Expect(string(text)).To(ContainSubstring(w.to))
	Expect(os.WriteFile(kubeconfig, []byte(strings.ReplaceAll(string(text), w.to, w.listener.Addr().String())), 0o600)).To(Succeed())
}

// stretch delays all data by some time until the spec ends.
func (w *wire) stretch(by time.Duration) {
	w.delay.Store(int64(by))
	DeferCleanup(func() { w.delay.Store(0) })
}

func (w *wire) serve() {
	for {
		from, err := w.listener.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", w.to)
		if err != nil {
			_ = from.Close()
			continue
		}
		w.wait.Go(func() {
			_, _ = io.Copy(to, from)
			_, _ = to.Close(), from.Close()
		})
		w.wait.Go(func() {
			w.delayed(from, to)
			_, _ = to.Close(), from.Close()
		})
	}
}

// delayed copies data, each piece when its time has come.
func (w *wire) delayed(to, from net.Conn) {
	type piece struct {
		text []byte
		due  time.Time
	}
	pieces := make(chan piece, 10_000)
	var sending sync.WaitGroup
	sending.Go(func() {
		for p := range pieces {
			<-time.After(time.Until(p.due))
			if _, err := to.Write(p.text); err != nil {
				_ = from.Close()
			}
		}
	})
	for {
		text := make([]byte, 32<<10)
		n, err := from.Read(text)
		if err != nil {
			break
		}
		pieces <- piece{text[:n], time.Now().Add(time.Duration(w.delay.Load()))}
	}
	close(pieces)
	sending.Wait()
}
