package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// maxReadable bounds the part that people read; with the digest the name stays below the 63 characters of a DNS label.
const maxReadable = 46

// NaturalName returns a name for the object that the parts identify together, such as a project and a branch, so that kube-apiserver itself
// refuses a second one. Equal parts give equal names, and different parts different ones. The readable part of the name is for people only.
func NaturalName(parts ...string) string {
	digest := sha256.New()
	for _, p := range parts {
		// The length keeps ("a", "bc") and ("ab", "c") apart.
		digest.Write([]byte{byte(len(p) >> 8), byte(len(p))})
		digest.Write([]byte(p))
	}
	readable := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		default:
			return '-'
		}
	}, strings.Join(parts, "-"))
	readable = strings.Trim(readable[:min(len(readable), maxReadable)], "-")
	sum := hex.EncodeToString(digest.Sum(nil))[:12]
	if readable == "" {
		return "x-" + sum
	}
	return readable + "-" + sum
}
