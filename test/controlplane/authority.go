package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	authorityLifetime   = 10 * 365 * 24 * time.Hour
	certificateLifetime = 365 * 24 * time.Hour
	// clockSkew is the time by which certificates are predated, in case a clock is set back.
	clockSkew = time.Hour
)

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// issued is a certificate with its key, both as PEM.
type issued struct {
	certificatePEM []byte
	keyPEM         []byte
}

// loadAuthority reads the authority whose certificate and key are kept at a path, and creates it if it does not exist.
func loadAuthority(path string) (*authority, error) {
	pair, err := tls.LoadX509KeyPair(path+certificateSuffix, path+keySuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return newAuthority(path)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the authority %s: %w", path, err)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("reading the authority %s: its key is not an ECDSA key", path)
	}
	return &authority{certificate: pair.Leaf, key: key}, nil
}

func newAuthority(path string) (*authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	template, err := dated(authorityLifetime)
	if err != nil {
		return nil, err
	}
	template.Subject = pkix.Name{CommonName: filepath.Base(path)}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	a := &authority{certificate: certificate, key: key}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	return a, issued{certificatePEM: a.certificatePEM(), keyPEM: keyPEM}.write(path)
}

func (a *authority) certificatePEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

// issue signs a certificate with the contents of the template and a new key.
func (a *authority) issue(template x509.Certificate) (issued, error) {
	fail := func(err error) (issued, error) {
		return issued{}, fmt.Errorf("issuing a certificate to %s: %w", template.Subject.CommonName, err)
	}
	key, err := newKey()
	if err != nil {
		return fail(err)
	}
	dates, err := dated(certificateLifetime)
	if err != nil {
		return fail(err)
	}
	template.SerialNumber, template.NotBefore, template.NotAfter = dates.SerialNumber, dates.NotBefore, dates.NotAfter
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, &template, a.certificate, key.Public(), a.key)
	if err != nil {
		return fail(err)
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return fail(err)
	}
	return issued{certificatePEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), keyPEM: keyPEM}, nil
}

// server describes the certificate of a server on the loopback that also answers to the given names.
func server(names ...string) x509.Certificate {
	return x509.Certificate{
		Subject:     pkix.Name{CommonName: names[0]},
		DNSNames:    names,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
}

// client describes the certificate of a user in groups.
func client(user string, groups ...string) x509.Certificate {
	return x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

func dated(lifetime time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &x509.Certificate{SerialNumber: serial, NotBefore: now.Add(-clockSkew), NotAfter: now.Add(lifetime)}, nil
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	text, err := encodeKey(key)
	if err != nil {
		return err
	}
	return replace(path, text)
}

// write writes the key before the certificate, so that every existing certificate has its key.
func (i issued) write(path string) error {
	if err := replace(path+keySuffix, i.keyPEM); err != nil {
		return err
	}
	return replace(path+certificateSuffix, i.certificatePEM)
}

// replace writes a file that only its owner can read, either completely or not at all.
func replace(path string, text []byte) error {
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
