package tools

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/forgeplane/forgeplane/test/controlplane"
	"github.com/forgeplane/forgeplane/test/process"
)

// Bucket is a bucket of an object store that speaks S3.
type Bucket struct {
	Name, Region, Endpoint string
	// AccessKey and SecretKey are the credentials of its owner.
	AccessKey, SecretKey string
}

// Storage returns the bucket in the form of the section "storage" of the configuration of the distribution registry.
func (b Bucket) Storage() []byte {
	return fmt.Appendf(nil, `
s3:
  bucket: %s
  region: %s
  regionendpoint: %s
  accesskey: %s
  secretkey: %s
  secure: false
  forcepathstyle: true
  rootdirectory: /forgeplane
`, b.Name, b.Region, b.Endpoint, b.AccessKey, b.SecretKey)
}

// ready is the time limit for the start of the object store.
const ready = 30 * time.Second

// StartS3 starts an object store that speaks S3, with an empty bucket. It runs until the test ends.
func StartS3(tb testing.TB) Bucket {
	tb.Helper()
	program := Images(tb, "versitygw")
	data := tb.TempDir()
	for _, directory := range []string{"buckets", "buckets/images", "sidecar"} {
		if err := os.Mkdir(filepath.Join(data, directory), 0o700); err != nil {
			tb.Fatal(err)
		}
	}
	port, err := controlplane.FreePort(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	b := Bucket{Name: "images", Region: "eu-central-1", Endpoint: fmt.Sprintf("http://127.0.0.1:%d", port), AccessKey: "forgeplane", SecretKey: "not-so-secret"}
	p, err := process.Start(process.Program{
		Name: "versitygw", Path: program, Dir: data, Log: filepath.Join(data, "log"),
		Args: []string{
			"--port", fmt.Sprintf("127.0.0.1:%d", port), "--access", b.AccessKey, "--secret", b.SecretKey, "--region", b.Region,
			"posix", "--sidecar", filepath.Join(data, "sidecar"), filepath.Join(data, "buckets"),
		},
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := p.Stop(); err != nil {
			tb.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(tb.Context(), ready)
	defer cancel()
	for {
		connection, err := new(net.Dialer).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			_ = connection.Close() // nothing was sent
			return b
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-p.Done():
			tb.Fatalf("versitygw has ended: %v\n%s", p.Ended(), p.Tail())
		case <-ctx.Done():
			tb.Fatalf("versitygw was not ready within %s: %v\n%s", ready, err, p.Tail())
		}
	}
}
