package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// keys is the content of the Secret.
type keys struct {
	// authorities are all known authorities; the first one signs.
	authorities  []*x509.Certificate
	authorityKey *ecdsa.PrivateKey
	leaf         *x509.Certificate
	leafKey      *ecdsa.PrivateKey
}

// parse parses the data of the Secret. Unreadable parts count as missing, and so are created again.
func parse(data map[string][]byte) *keys {
	k := &keys{}
	k.authorities, _ = cert.ParseCertsPEM(data[authoritiesKey])
	k.authorityKey = parseKey(data[authorityKeyKey])
	if leaf, err := cert.ParseCertsPEM(data[corev1.TLSCertKey]); err == nil {
		k.leaf = leaf[0]
	}
	k.leafKey = parseKey(data[corev1.TLSPrivateKeyKey])
	return k
}

func parseKey(text []byte) *ecdsa.PrivateKey {
	parsed, err := keyutil.ParsePrivateKeyPEM(text)
	if err != nil {
		return nil
	}
	key, _ := parsed.(*ecdsa.PrivateKey)
	return key
}

// data is the inverse of parse.
func (k *keys) data() (map[string][]byte, error) {
	var authorities []byte
	for _, a := range k.authorities {
		authorities = append(authorities, encode(a)...)
	}
	authorityKey, err := keyutil.MarshalPrivateKeyToPEM(k.authorityKey)
	if err != nil {
		return nil, err
	}
	leafKey, err := keyutil.MarshalPrivateKeyToPEM(k.leafKey)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		authoritiesKey: authorities, authorityKeyKey: authorityKey,
		corev1.TLSCertKey: encode(k.leaf), corev1.TLSPrivateKeyKey: leafKey,
	}, nil
}

func encode(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: c.Raw})
}

// renew returns the current keys, which are k itself if nothing is due for renewal.
func renew(k *keys, names []string, now time.Time) (*keys, error) {
	next := *k
	next.authorities = slices.DeleteFunc(slices.Clone(k.authorities), func(a *x509.Certificate) bool { return now.After(a.NotAfter) })
	if !next.signs() || due(next.authorities[0], now) {
		if err := next.newAuthority(now); err != nil {
			return nil, fmt.Errorf("making an authority: %w", err)
		}
	}
	holds := next.holds(names, now)
	if holds && (!due(next.leaf, now) || now.Sub(next.authorities[0].NotBefore) < clockSkew+notice) {
		return &next, nil
	}
	if err := next.newLeaf(names, now); err != nil {
		return nil, fmt.Errorf("issuing a certificate: %w", err)
	}
	return &next, nil
}

// signs reports whether there is an authority to sign with.
func (k *keys) signs() bool {
	return len(k.authorities) > 0 && k.authorityKey != nil && k.authorityKey.PublicKey.Equal(k.authorities[0].PublicKey)
}

// holds reports whether clients accept the certificate.
func (k *keys) holds(names []string, now time.Time) bool {
	if k.leaf == nil || k.leafKey == nil || !k.leafKey.PublicKey.Equal(k.leaf.PublicKey) {
		return false
	}
	pool := x509.NewCertPool()
	for _, a := range k.authorities {
		pool.AddCert(a)
	}
	for _, name := range names {
		_, err := k.leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: name, CurrentTime: now})
		if err != nil {
			return false
		}
	}
	return true
}

// due reports whether two thirds of a certificate's life are over.
func due(c *x509.Certificate, now time.Time) bool {
	return now.After(c.NotBefore.Add(c.NotAfter.Sub(c.NotBefore) * 2 / 3))
}

func (k *keys) newAuthority(now time.Time) error {
	template, key, err := begin("forgeplane-apiserver-ca", now, authorityLifetime)
	if err != nil {
		return err
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign
	made, err := sign(template, template, key, key)
	if err != nil {
		return err
	}
	k.authorities, k.authorityKey = append([]*x509.Certificate{made}, k.authorities...), key
	return nil
}

func (k *keys) newLeaf(names []string, now time.Time) error {
	template, key, err := begin(names[0], now, certificateLifetime)
	if err != nil {
		return err
	}
	template.DNSNames = names
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	made, err := sign(template, k.authorities[0], key, k.authorityKey)
	if err != nil {
		return err
	}
	k.leaf, k.leafKey = made, key
	return nil
}

func begin(name string, now time.Time, lifetime time.Duration) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, err
	}
	// The serial is in the name, so that authorities that follow each other are told apart by it.
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name, SerialNumber: serial.Text(36)},
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(lifetime),
	}, key, nil
}

func sign(template, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}
