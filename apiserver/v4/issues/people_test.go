package issues_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/note"
)

const firstIssue = "/projects/20/issues/1"

// noted creates an issue by gus that is assigned to rita and has a note by otto.
func (w world) noted() {
	w.t.Helper()
	w.create("gus", `{"title":"Broken"}`)
	w.done("mary", "PUT "+firstIssue, `{"assignee_ids":[3]}`)
	i, err := w.Activity.Issues.WithID(w.t.Context(), 1)
	if err != nil {
		w.t.Fatal(err)
	}
	otto, err := w.Catalog.UserByUsername(w.t.Context(), "otto")
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.Activity.Notes.Create(w.t.Context(), &note.Note{In: i.In, On: i.Item(), Body: "Good", Author: item.User(otto)}); err != nil {
		w.t.Fatal(err)
	}
}

func TestSubscription_followsFromPartUnlessChosen(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.noted()
	for as, want := range map[string]bool{"gus": true, "rita": true, "otto": true, "mary": false, "": false} {
		g.Expect(w.done(as, "GET "+firstIssue, "").Subscribed).To(Equal(want), as)
		if as == "" {
			continue
		}
		on, off := "POST "+firstIssue+"/subscribe", "POST "+firstIssue+"/unsubscribe"
		if !want {
			on, off = off, on
		}
		g.Expect(w.As(as, on, "").String()).To(Equal("304"), as)
		a := w.As(as, off, "")
		g.Expect(a.Code).To(Equal(201), a.Body)
		g.Expect(familytest.Decode[shown](t, a).Subscribed).To(Equal(!want), as)
		g.Expect(w.As(as, off, "").String()).To(Equal("304"), as)
		g.Expect(w.done(as, on, "").Subscribed).To(Equal(want), as)
	}
	g.Expect(w.As("", "POST "+firstIssue+"/subscribe", "").Code).To(Equal(401))
}

func TestParticipants_includeAuthorAssigneesAndWriters(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.noted()
	get := func(query string) []user {
		t.Helper()
		a := w.As("", "GET "+firstIssue+"/participants"+query, "")
		g.Expect(a.Code).To(Equal(200), a.Body)
		return familytest.Decode[[]user](t, a)
	}
	g.Expect(get("")).To(Equal([]user{{"gus"}, {"rita"}, {"otto"}}))
	g.Expect(get("?per_page=2&page=2")).To(Equal([]user{{"otto"}}))
}
