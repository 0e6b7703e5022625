package cleanup

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// Declared returns the policy that a RegistryCleanup declares. The error names the malformed field.
func Declared(s *v1alpha1.RegistryCleanupSpec) (*Policy, error) {
	p := &Policy{KeepN: s.KeepN}
	var err error
	if p.Delete, err = Names(s.NameRegexDelete); err != nil {
		return nil, fmt.Errorf("nameRegexDelete: %w", err)
	}
	if s.NameRegexKeep != "" {
		if p.Keep, err = Names(s.NameRegexKeep); err != nil {
			return nil, fmt.Errorf("nameRegexKeep: %w", err)
		}
	}
	if s.OlderThan != "" {
		span, err := ParseSpan(s.OlderThan)
		if err != nil {
			return nil, fmt.Errorf("olderThan: %w", err)
		}
		p.OlderThan = &span
	}
	return p, nil
}

// Checksum returns a checksum of what a RegistryCleanup declares about the tags to delete.
func Checksum(s *v1alpha1.RegistryCleanupSpec) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %d %q %t", s.Repository, s.NameRegexDelete, s.NameRegexKeep, s.KeepN, s.OlderThan, s.DryRun))
	return hex.EncodeToString(sum[:])
}

// RunID returns the ID of a run of a RegistryCleanup.
func RunID(of types.UID, number int64) string { return fmt.Sprintf("%s/%d", of, number) }
