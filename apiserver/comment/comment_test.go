package comment_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/apiserver/comment"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/issue"
	"github.com/forgeplane/forgeplane/internal/note"
)

func TestTogether_writesNothingOnItemThatIsGone(t *testing.T) {
	g, w := NewWithT(t), familytest.New(t)
	w.Activity = familytest.Activity(t, w.Clock)
	gone := item.Issue{Issue: issue.Issue{ID: 7}}
	c := comment.Writer{Stores: w.Activity, Clock: w.Clock}
	g.Expect(c.Together(t.Context(), gone, "creating a note", func(ctx context.Context) error {
		return w.Activity.Notes.Create(ctx, &note.Note{On: gone.Item(), Body: "Why?"})
	})).To(MatchError(gone.Missing()))
	g.Expect(w.Activity.Notes.Counts(t.Context(), issue.Kind, gone.ID)).To(BeEmpty())
}
