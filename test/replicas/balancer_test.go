package replicas

import (
	"fmt"
	"io"
	"net"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// balancer plays the role of a Service of a cluster: it passes connections on to the first server that accepts them.
type balancer struct {
	listener net.Listener
	servers  []int
	wait     sync.WaitGroup
}

// startBalancer starts a balancer for servers at ports of 127.0.0.1. It stops with the suite.
func startBalancer(servers ...int) *balancer {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	b := &balancer{listener: listener, servers: servers}
	b.wait.Go(b.serve)
	DeferCleanup(func() {
		_ = listener.Close()
		b.wait.Wait()
	})
	return b
}

func (b *balancer) port() int { return b.listener.Addr().(*net.TCPAddr).Port }

func (b *balancer) serve() {
	for {
		from, err := b.listener.Accept()
		if err != nil {
			return
		}
		b.wait.Go(func() { b.pass(from) })
	}
}

func (b *balancer) pass(from net.Conn) {
	defer func() { _ = from.Close() }()
	for _, server := range b.servers {
		to, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", server))
		if err != nil {
			continue
		}
		var both sync.WaitGroup
		for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
			both.Go(func() {
				_, _ = io.Copy(pair[0], pair[1])
				_, _ = from.Close(), to.Close()
			})
		}
		both.Wait()
		return
	}
}
