package commit_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/forgeplane/forgeplane/apiserver/commit"
	"github.com/forgeplane/forgeplane/internal/git/object"
)

func TestShow_returnsCommitAsClientsExpect(t *testing.T) {
	id := "6104942438c14ec7bd21c6cd5bd995272b3faff6"
	when := time.Date(2023, 9, 1, 12, 34, 56, 0, time.FixedZone("", 2*60*60))
	c := &object.Commit{
		ID: id, Parents: []string{"0b4bc9a49b562e85de7cc9e834518ea6828729b9"},
		Author:    object.Signature{Name: "Ann", Email: "ann@example.com", When: when},
		Committer: object.Signature{Name: "Bo", Email: "bo@example.com", When: when.UTC()},
		Message:   "Title\nof two lines\n\nBody\n\nChangelog: added\nCc: One\nCc: Two\n",
	}
	want := `{"id":"` + id + `","short_id":"61049424","created_at":"2023-09-01T10:34:56.000+00:00",` +
		`"parent_ids":["0b4bc9a49b562e85de7cc9e834518ea6828729b9"],"title":"Title of two lines",` +
		`"message":"Title\nof two lines\n\nBody\n\nChangelog: added\nCc: One\nCc: Two\n",` +
		`"author_name":"Ann","author_email":"ann@example.com","authored_date":"2023-09-01T12:34:56.000+02:00",` +
		`"committer_name":"Bo","committer_email":"bo@example.com","committed_date":"2023-09-01T10:34:56.000+00:00",` +
		`"trailers":{"Cc":"Two","Changelog":"added"},"web_url":"https://forge.example/acme/web/-/commit/` + id + `"}`
	if got, err := json.Marshal(commit.Show(c, "https://forge.example/acme/web")); err != nil || string(got) != want {
		t.Errorf("got  %s (%v)\nwant %s", got, err, want)
	}
	c.Parents, c.Message = nil, "Title"
	got, err := json.Marshal(commit.Show(c, ""))
	if err != nil || !strings.Contains(string(got), `"parent_ids":[],`) || !strings.Contains(string(got), `"trailers":{},`) {
		t.Errorf("the first commit is %s (%v)", got, err)
	}
}
