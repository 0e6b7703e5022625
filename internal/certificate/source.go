// Package certificate keeps the certificate of a server: one that it issues itself and keeps in a Secret, for all replicas,
// or one in files that are renewed from outside.
package certificate

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// interval is the interval at which a source looks for a new certificate.
const interval = time.Minute

// Source provides the certificate of a server. Call Load before using anything that it returns.
type Source struct {
	clock   clock.WithTicker
	log     logr.Logger
	load    func(ctx context.Context) (*bundle, error)
	current atomic.Pointer[bundle]
}

// bundle is a certificate with its key, and the authorities by which clients verify it, all as PEM.
type bundle struct{ authorities, certificate, key []byte }

// Files returns a source that reads PEM files: a certificate with its chain, its key, and the authorities by which clients
// verify it.
func Files(certificate, key, authorities string, clk clock.WithTicker, log logr.Logger) *Source {
	return &Source{clock: clk, log: log, load: func(context.Context) (*bundle, error) {
		var b bundle
		for path, text := range map[string]*[]byte{certificate: &b.certificate, key: &b.key, authorities: &b.authorities} {
			var err error
			if *text, err = os.ReadFile(path); err != nil {
				return nil, fmt.Errorf("reading the certificate of the server: %w", err)
			}
		}
		// Files are replaced one after the other: a pair is taken when it is one.
		if _, err := tls.X509KeyPair(b.certificate, b.key); err != nil {
			return nil, fmt.Errorf("reading the certificate %s with the key %s: %w", certificate, key, err)
		}
		return &b, nil
	}}
}

// Load brings the certificate up to date and reports whether it, or its authorities, changed.
func (s *Source) Load(ctx context.Context) (changed bool, err error) {
	b, err := s.load(ctx)
	if err != nil {
		return false, err
	}
	old := s.current.Swap(b)
	return old == nil || !bytes.Equal(old.certificate, b.certificate) || !bytes.Equal(old.authorities, b.authorities), nil
}

// Pair returns the certificate and its key as PEM.
func (s *Source) Pair() (certificate, key []byte) {
	b := s.current.Load()
	return b.certificate, b.key
}

// Authorities returns the authorities by which clients verify the certificate, as PEM.
func (s *Source) Authorities() []byte { return s.current.Load().authorities }

// Run keeps the certificate up to date until ctx ends, and calls changed after each change. While it cannot be brought up
// to date the last one stays.
func (s *Source) Run(ctx context.Context, changed func()) {
	ticker := s.clock.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		news, err := s.Load(ctx)
		if err != nil && ctx.Err() == nil {
			s.log.Error(err, "Failed to renew the certificate of the server")
		}
		if news {
			changed()
		}
	}
}
