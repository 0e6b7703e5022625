package runnerjobs

import (
	"cmp"
	"context"
	"crypto/sha1" //nolint:gosec // a key of a cache is no secret, and the reference uses SHA-1
	"encoding/hex"

	"github.com/forgeplane/forgeplane/apiserver/launch"
	"github.com/forgeplane/forgeplane/internal/ci/config"
)

// noKey is the key of a cache without one.
const noKey = "default"

// caches returns the caches of a job.
func (f *Family) caches(ctx context.Context, e launch.Execution) ([]Cache, error) {
	all := make([]Cache, 0, len(e.Job.Spec.Cache))
	for _, c := range e.Job.Spec.Cache {
		key, err := f.cacheKey(ctx, e, c)
		if err != nil {
			return nil, err
		}
		all = append(all, Cache{
			Key: key, Untracked: c.Untracked, Unprotect: c.Unprotect, Policy: cmp.Or(c.Policy, "pull-push"), Paths: append([]string{}, c.Paths...),
			When: cmp.Or(c.When, "on_success"), FallbackKeys: append([]string{}, c.FallbackKeys...),
		})
	}
	return all, nil
}

// cacheKey returns the key of a cache, which can depend on the content of files. Protected and other branches have different keys, so that a pipeline
// of an unprotected branch cannot change what one of a protected branch uses.
func (f *Family) cacheKey(ctx context.Context, e launch.Execution, c config.Cache) (string, error) {
	key := cmp.Or(c.Key, noKey)
	if len(c.KeyFiles) > 0 {
		repo, err := f.Repositories.Content(ctx, e.In.Project)
		if err != nil {
			return "", err
		}
		names := make([]string, len(c.KeyFiles))
		for i, path := range c.KeyFiles {
			names[i] = e.Pipeline.SHA + ":" + path
		}
		objects, err := repo.Objects(ctx, names...)
		if err != nil {
			return "", err
		}
		of := ""
		for _, o := range objects {
			of += o.ID
		}
		if key = noKey; of != "" {
			sum := sha1.Sum([]byte(of)) //nolint:gosec // see above
			key = hex.EncodeToString(sum[:])
		}
		if c.KeyPrefix != "" {
			key = c.KeyPrefix + "-" + key
		}
	}
	switch {
	case c.Unprotect:
		return key, nil
	case e.Pipeline.Protected:
		return key + "-protected", nil
	default:
		return key + "-non_protected", nil
	}
}
