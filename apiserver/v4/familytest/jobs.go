package familytest

import (
	"context"

	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

// Jobs maps job tokens to their jobs. It implements auth.Jobs.
type Jobs map[string]pipeline.Job

// ByDigest implements auth.Jobs.
func (j Jobs) ByDigest(_ context.Context, digest string) (pipeline.Job, error) {
	for token, found := range j {
		if found.TokenDigest = credential.Digest(token); found.TokenDigest == digest {
			return found, nil
		}
	}
	return pipeline.Job{}, pipeline.ErrNotFound
}
