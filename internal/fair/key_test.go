package fair_test

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/fair"
)

func TestParseKey_readsTextOfKey(t *testing.T) {
	g := NewWithT(t)
	for text, key := range map[string]fair.Key{
		"self:":                             {},
		"user:7":                            fair.User(7),
		"namespace:acme":                    fair.Namespace("acme"),
		"bots:1-2":                          fair.Bots("1-2"),
		"identity:a:b":                      fair.Identity("a:b"),
		"unsigned identity:a":               fair.Identity("a").Unsigned(),
		"address:192.0.2.1":                 fair.Address(netip.MustParseAddr("192.0.2.1")),
		"address:2001:db8::":                fair.Address(netip.MustParseAddr("2001:db8::1")),
		"identity:system:serviceaccount:n:": fair.Identity("system:serviceaccount:n:a"),
	} {
		g.Expect(key.String()).To(Equal(text))
		g.Expect(fair.ParseKey(text)).To(Equal(key))
	}
	for _, text := range []string{"", "self:x", "user:", "user:x", "user:+7", "address:x", "others:x", "acme"} {
		key, err := fair.ParseKey(text)
		g.Expect(err).To(MatchError(ContainSubstring("is not the text of a caller")))
		g.Expect(key).To(BeZero())
	}
}
