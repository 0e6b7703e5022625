// Package accesstoken makes the values of access tokens, and finds the tokens.
package accesstoken

import (
	"crypto/rand"
	"encoding/base64"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// How many days a token is accepted that is created over REST, and one that is rotated, when nothing else is said.
const (
	Lifetime        = 365
	RotatedLifetime = 7
)

// Expiry returns the beginning of a day in UTC, or of the one in so many days if day is zero, and whether that is after now.
func Expiry(day time.Time, days int, now time.Time) (at metav1.Time, future bool) {
	now = now.UTC()
	if day.IsZero() {
		day = now.AddDate(0, 0, days)
	}
	year, month, date := day.Date()
	at.Time = time.Date(year, month, date, 0, 0, 0, 0, time.UTC)
	return at, now.Before(at.Time)
}

// Expired reports whether a token has expired.
func Expired(t *v1alpha1.AccessToken, now time.Time) bool {
	return t.Spec.ExpiresAt != nil && !now.Before(t.Spec.ExpiresAt.Time)
}

// Ended reports whether a token is revoked or has expired.
func Ended(t *v1alpha1.AccessToken, now time.Time) bool { return t.Spec.Revoked || Expired(t, now) }

// Prefix begins every generated value, so that a leaked one can be recognised.
const Prefix = "fpat-"

// size is the number of random bytes in a value.
const size = 32

// Generate returns a new value.
func Generate() string {
	random := make([]byte, size)
	_, _ = rand.Read(random) // It never fails: the process ends if there is no randomness.
	return Prefix + base64.RawURLEncoding.EncodeToString(random)
}
