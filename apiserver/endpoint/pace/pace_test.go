package pace_test

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forgeplane/forgeplane/apiserver/endpoint/pace"
)

// TestPass_cutsOffSlowClients runs with a fake clock, so that a minute takes no time.
func TestPass_cutsOffSlowClients(t *testing.T) {
	const size, piece = 24 << 20, 64 << 10
	for _, tt := range []struct {
		name string
		// second is the number of bytes that the client reads per second, and pause is the time that the server takes between two pieces.
		second int
		pause  time.Duration
		cutOff bool
	}{
		{"a client that is too slow", 32 << 10, 0, true},
		{"a client that is fast enough", 128 << 10, 0, false},
		{"a client that waits for the server", 8 << 20, 10 * time.Minute, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := net.Pipe()
				ended := make(chan error, 1)
				begun := time.Now()
				go func() {
					defer server.Close()
					p := pace.Pace{Patience: time.Minute, Pause: 5 * time.Minute}
					var err error
					for sent := 0; sent < size && err == nil; sent += piece {
						_, err = p.Pass(server.SetWriteDeadline, func() (int, error) { return server.Write(make([]byte, piece)) })
						<-time.After(tt.pause)
					}
					ended <- err
				}()
				for {
					if _, err := io.CopyN(io.Discard, client, int64(tt.second)); err != nil {
						break
					}
					<-time.After(time.Second)
				}
				err := <-ended
				if pace.TooSlow(err) != tt.cutOff || !tt.cutOff && err != nil {
					t.Errorf("after %s: %v", time.Since(begun), err)
				}
				if took := time.Since(begun); tt.cutOff && (took < time.Minute || took > 3*time.Minute) {
					t.Errorf("it was cut off after %s", took)
				}
			})
		})
	}
}
