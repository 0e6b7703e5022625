// Package diff has the representation of the differences between two commits in the REST API.
package diff

import (
	"cmp"
	"net/http"
	"strings"
	"time"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/git/history"
)

// Patience limits the time for the texts of a comparison, because kube-apiserver ends requests after a minute.
const Patience = 20 * time.Second

// Diff is "Diff" of the core interface document.
type Diff struct {
	Diff        string `json:"diff" doc:"The hunks. Empty if no lines differ, or if the file is too large."`
	NewPath     string `json:"new_path"`
	OldPath     string `json:"old_path"`
	AMode       string `json:"a_mode" doc:"Six octal digits; 0 for a new file."`
	BMode       string `json:"b_mode" doc:"Six octal digits; 0 for a removed file."`
	NewFile     bool   `json:"new_file"`
	RenamedFile bool   `json:"renamed_file"`
	DeletedFile bool   `json:"deleted_file"`
	TooLarge    bool   `json:"too_large" doc:"Whether the text is left out because there is too much of it."`
}

// noMode is the mode of a file that does not exist.
const noMode = "0"

// Show returns a change in the form of the REST API. With unidiff, the text begins with the two lines that name the files, as patch reads
// them.
func Show(c history.Change, unidiff bool) Diff {
	shown := Diff{
		Diff: c.Text, OldPath: c.OldPath, NewPath: c.NewPath, AMode: cmp.Or(c.OldMode, noMode), BMode: cmp.Or(c.NewMode, noMode),
		NewFile: c.OldMode == "", DeletedFile: c.NewMode == "", RenamedFile: c.OldPath != c.NewPath, TooLarge: c.TooLarge,
	}
	if unidiff && strings.HasPrefix(c.Text, "@@") {
		shown.Diff = c.Names + c.Text
	}
	return shown
}

// Page returns the page of changes that p requests.
func Page(p endpoint.Paging, all history.Diff, unidiff bool) (endpoint.List[Diff], error) {
	if all.TimedOut {
		return endpoint.List[Diff]{}, Late()
	}
	show := func(c history.Change) Diff { return Show(c, unidiff) }
	if skip, size := p.Window(); all.Truncated {
		return endpoint.Part(endpoint.Rows(p, all.Changes), skip+size < len(all.Changes), show), nil
	}
	return endpoint.Page(p, all.Changes, show), nil
}

// Late returns 503 for a comparison that timed out before all changes were known. Use it for responses without a field that says so.
func Late() *endpoint.Error {
	return endpoint.Message(http.StatusServiceUnavailable, "The diff takes too long")
}

// All returns all changes in the form of the REST API.
func All(changes []history.Change, unidiff bool) []Diff {
	shown := make([]Diff, len(changes))
	for i, c := range changes {
		shown[i] = Show(c, unidiff)
	}
	return shown
}
