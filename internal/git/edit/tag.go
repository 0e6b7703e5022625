package edit

import (
	"context"
	"fmt"
	"strings"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
	"github.com/forgeplane/forgeplane/internal/git/object"
)

// Tag writes an annotated tag and returns its id. It ignores t.ID. No ref names the tag yet.
func Tag(ctx context.Context, r *git.Repository, t object.Tag) (id string, err error) {
	if err := object.CheckRefName("refs/tags/" + t.Name); err != nil {
		return "", err
	}
	if err := object.CheckIDs(t.Object); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, writeTimeout, fmt.Errorf("writing a tag took longer than %s", writeTimeout))
	defer cancel()
	if err := r.CheckRoom(ctx); err != nil {
		return "", err
	}
	c := process.In(r.Dir(), "mktag")
	c.Stdin = strings.NewReader(fmt.Sprintf("object %s\ntype %s\ntag %s\ntagger %s\n\n%s\n",
		t.Object, t.Type, t.Name, t.Tagger, strings.TrimRight(t.Message, "\n")))
	out, err := r.Output(ctx, 1024, c)
	return strings.TrimSpace(string(out)), err
}
