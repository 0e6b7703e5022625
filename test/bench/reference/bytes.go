package reference

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/cert"
)

// Bytes is a server that always writes the same bytes, with a bare handler of net/http.
type Bytes struct {
	*Process
	// Address is its address, as host:port.
	Address string
}

// StartBytes serves the content of a file as JSON at every path.
func StartBytes(ctx context.Context, file string) (*Bytes, error) {
	p, address, err := start(ctx, "bytes", file)
	return &Bytes{p, address}, err
}

// StartBytesTLS is StartBytes with TLS and an unknown certificate.
func StartBytesTLS(ctx context.Context, file string) (*Bytes, error) {
	p, address, err := start(ctx, "bytes-tls", file)
	return &Bytes{p, address}, err
}

// StartFiles serves the files of a directory, in the way of a server of files. A PUT stores one.
func StartFiles(ctx context.Context, directory string) (*Bytes, error) {
	p, address, err := start(ctx, "files", directory)
	return &Bytes{p, address}, err
}

func serveFiles(ctx context.Context, directory string) error {
	return serve(ctx, func(w http.ResponseWriter, r *http.Request) {
		file := filepath.Join(directory, path.Base(r.URL.Path))
		if r.Method != http.MethodPut {
			http.ServeFile(w, r, file)
			return
		}
		if err := store(file, r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}, nil)
}

func store(file string, content io.Reader) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Close())
}

func serveBytes(ctx context.Context, file string) error { return serveFile(ctx, file, nil) }

func serveBytesTLS(ctx context.Context, file string) error {
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	return serveFile(ctx, file, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
}

func serveFile(ctx context.Context, file string, secure *tls.Config) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return serve(ctx, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(text)
	}, secure)
}

func serve(ctx context.Context, handler http.HandlerFunc, secure *tls.Config) error {
	server := http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, TLSConfig: secure}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := announce(listener.Addr().String()); err != nil {
		return err
	}
	if secure != nil {
		err = server.ServeTLS(listener, "", "")
	} else {
		err = server.Serve(listener)
	}
	if !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
