package reactions

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/epic"
	"github.com/forgeplane/forgeplane/internal/issue"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/note"
)

func TestCreate_writesNothingToItemThatIsGone(t *testing.T) {
	g, w := NewWithT(t), familytest.New(t, familytest.User("ann", 2))
	w.Activity = familytest.Activity(t, w.Clock)
	f := New(w.Kit)
	ann, err := w.Catalog.UserByUsername(t.Context(), "ann")
	g.Expect(err).NotTo(HaveOccurred())
	for _, gone := range []item.Item{
		item.Issue{Issue: issue.Issue{ID: 7}}, item.MergeRequest{MergeRequest: mergerequest.MergeRequest{ID: 7}},
		item.Epic{Epic: epic.Epic{ID: 7}}, item.Note{Note: note.Note{ID: 7}},
	} {
		_, err := f.create(t.Context(), auth.Subject{Caller: auth.Caller{User: ann}}, gone, &createRequest{Name: "tada"})
		g.Expect(err).To(MatchError(gone.Missing()), gone.Type())
		_, total, err := w.Activity.Reactions.List(t.Context(), gone.Item(), 0, 1)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(total).To(BeZero(), gone.Type())
	}
}
