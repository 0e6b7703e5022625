package item

import (
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

// Kind is a kind of items that collections belong to, such as notes.
type Kind[T Item] struct {
	// Path is the path of an item, and Noun names it in summaries, as in "an issue".
	Path, Noun string
	// Find finds the item of a request. The endpoint must ask for Asks.
	Find auth.Find[T]
	Asks []endpoint.Ability
	// Read is the ability to see the items, and Internal the ability to see the internal notes on them.
	Read, Internal endpoint.Ability
}

// Issues are the issues of projects.
func (f Finder) Issues() Kind[Issue] {
	return Kind[Issue]{
		Path: "/projects/{id}/issues/{issue_iid}", Noun: "an issue", Find: f.Issue, Asks: []endpoint.Ability{auth.ReadConfidential},
		Read: auth.ReadIssues, Internal: auth.ReadConfidential,
	}
}

// MergeRequests are the merge requests of projects.
func (f Finder) MergeRequests() Kind[MergeRequest] {
	return Kind[MergeRequest]{
		Path: "/projects/{id}/merge_requests/{merge_request_iid}", Noun: "a merge request", Find: f.MergeRequest,
		Read: auth.ReadMergeRequests, Internal: auth.ReadConfidential,
	}
}

// Epics are the epics of groups.
func (f Finder) Epics() Kind[Epic] {
	return Kind[Epic]{
		Path: "/groups/{id}/epics/{epic_id}", Noun: "an epic", Find: f.Epic, Asks: []endpoint.Ability{auth.ReadConfidentialEpics},
		Read: auth.ReadEpics, Internal: auth.ReadConfidentialEpics,
	}
}
