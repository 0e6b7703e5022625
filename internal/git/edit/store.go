package edit

import (
	"context"
	"errors"
	"regexp"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
	"github.com/forgeplane/forgeplane/internal/git/object"
)

// RefusedObjectError is returned for objects that Git would also refuse in a push.
type RefusedObjectError struct {
	// Reason is Git's message, such as "hasDotgit: contains '.git'".
	Reason string
}

func (e *RefusedObjectError) Error() string { return "Git does not accept the content: " + e.Reason }

var refusedObject = regexp.MustCompile(`(?m)^error: object [0-9a-f]+: (.+)$`)

// store adds the objects of a pack to the repository, with the checks and commands of a push. Objects that they refer to must be in the
// pack or in the repository.
func store(ctx context.Context, r *git.Repository, p *object.Pack) error {
	if err := r.CheckRoom(ctx); err != nil {
		return err
	}
	c := process.In(r.Dir(), "unpack-objects", "-q", "--strict")
	if p.Length() >= process.UnpackLimit {
		c = process.In(r.Dir(), "index-pack", "--stdin", "--strict")
	}
	c.Stdin = p.Reader()
	err := r.Run(ctx, c)
	if failed := (*process.Error)(nil); errors.As(err, &failed) {
		if said := refusedObject.FindStringSubmatch(failed.Stderr); said != nil {
			return &RefusedObjectError{Reason: said[1]}
		}
	}
	return err
}
