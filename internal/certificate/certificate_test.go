package certificate

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
)

const name = "forgeplane-apiserver.forgeplane-system.svc"

// verifies returns nil if a client that trusts the authorities accepts a certificate.
func verifies(authorities []*x509.Certificate, leaf *x509.Certificate, now time.Time) error {
	pool := x509.NewCertPool()
	for _, a := range authorities {
		pool.AddCert(a)
	}
	_, err := leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: name, CurrentTime: now})
	return err
}

// stored returns keys after they were written to a Secret and read again.
func stored(g Gomega, k *keys) *keys {
	data, err := k.data()
	g.Expect(err).NotTo(HaveOccurred())
	return parse(data)
}

func TestRenew_keepsCertificateAcceptedByOldClients(t *testing.T) {
	g := NewWithT(t)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	k, err := renew(&keys{}, []string{name}, now)
	g.Expect(err).NotTo(HaveOccurred())
	var leaves, authorities, most int
	for end := now.AddDate(25, 0, 0); now.Before(end); {
		now = now.Add(24 * time.Hour)
		before := stored(g, k)
		k, err = renew(before, []string{name}, now)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(verifies(k.authorities, k.leaf, now)).To(Succeed())
		g.Expect(verifies(before.authorities, k.leaf, now)).To(Succeed(), "by a client that has not heard of the renewal")
		g.Expect(k.leaf.NotAfter.Sub(now)).To(BeNumerically(">", 28*24*time.Hour))
		if !k.leaf.Equal(before.leaf) {
			leaves++
		}
		if !k.authorities[0].Equal(before.authorities[0]) {
			authorities++
		}
		most = max(most, len(k.authorities))
	}
	g.Expect(leaves).To(BeNumerically("~", 25*365/60, 5))
	g.Expect(authorities).To(Equal(3))
	g.Expect(most).To(Equal(2), "expired authorities go")
}

func TestRenew_changesNothingBeforeItIsDue(t *testing.T) {
	g := NewWithT(t)
	now := time.Now()
	k, err := renew(&keys{}, []string{name}, now)
	g.Expect(err).NotTo(HaveOccurred())
	before, err := k.data()
	g.Expect(err).NotTo(HaveOccurred())
	again, err := renew(parse(before), []string{name}, now.Add(59*24*time.Hour))
	g.Expect(err).NotTo(HaveOccurred())
	after, err := again.data()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(after).To(Equal(before))
}

func TestRenew_replacesBrokenKeys(t *testing.T) {
	now := time.Now()
	for what, breakIt := range map[string]func(map[string][]byte){
		"all data is missing":         func(d map[string][]byte) { clear(d) },
		"the key is missing":          func(d map[string][]byte) { delete(d, corev1.TLSPrivateKeyKey) },
		"the certificate is garbage":  func(d map[string][]byte) { d[corev1.TLSCertKey] = []byte("garbage") },
		"the authority is missing":    func(d map[string][]byte) { delete(d, authoritiesKey) },
		"the authority's key is lost": func(d map[string][]byte) { d[authorityKeyKey] = nil },
		"the key does not match":      func(d map[string][]byte) { d[corev1.TLSPrivateKeyKey] = d[authorityKeyKey] },
	} {
		t.Run(what, func(t *testing.T) {
			g := NewWithT(t)
			k, err := renew(&keys{}, []string{name}, now)
			g.Expect(err).NotTo(HaveOccurred())
			data, err := k.data()
			g.Expect(err).NotTo(HaveOccurred())
			breakIt(data)
			k, err = renew(parse(data), []string{name}, now)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(stored(g, k).holds([]string{name}, now)).To(BeTrue())
			g.Expect(stored(g, k).signs()).To(BeTrue())
		})
	}
}

func TestRenew_followsNamesOfServer(t *testing.T) {
	g := NewWithT(t)
	now := time.Now()
	k, err := renew(&keys{}, []string{name}, now)
	g.Expect(err).NotTo(HaveOccurred())
	k, err = renew(stored(g, k), []string{name, "other"}, now)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(k.leaf.DNSNames).To(Equal([]string{name, "other"}))
}

func TestFiles_reloadsOnlyCompletePairs(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	write := func(names ...string) *keys {
		k, err := renew(&keys{}, []string{name}, time.Now())
		g.Expect(err).NotTo(HaveOccurred())
		data, err := k.data()
		g.Expect(err).NotTo(HaveOccurred())
		for _, n := range names {
			g.Expect(os.WriteFile(filepath.Join(dir, n), data[n], 0o600)).To(Succeed())
		}
		return k
	}
	first := write("ca.crt", "tls.crt", "tls.key")
	source := Files(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), filepath.Join(dir, "ca.crt"), clocktesting.NewFakeClock(time.Now()), logr.Discard())
	g.Expect(source.Load(t.Context())).To(BeTrue())
	g.Expect(source.Load(t.Context())).To(BeFalse())
	write("tls.crt")
	_, err := source.Load(t.Context())
	g.Expect(err).To(MatchError(ContainSubstring("tls.crt")))
	served, _ := source.Pair()
	g.Expect(served).To(Equal(encode(first.leaf)))
	second := write("ca.crt", "tls.crt", "tls.key")
	g.Expect(source.Load(t.Context())).To(BeTrue())
	served, _ = source.Pair()
	g.Expect(served).To(Equal(encode(second.leaf)))
	g.Expect(source.Authorities()).To(Equal(encode(second.authorities[0])))
}
