// Package commit has the representation of a commit in the REST API.
package commit

import (
	"time"

	"github.com/forgeplane/forgeplane/internal/git/object"
)

// Commit is "Merge base commit" of the core interface document, with further fields that clients expect.
type Commit struct {
	ID             string            `json:"id"`
	ShortID        string            `json:"short_id" doc:"The first characters of the id."`
	CreatedAt      Time              `json:"created_at" doc:"When it was committed."`
	ParentIDs      []string          `json:"parent_ids"`
	Title          string            `json:"title" doc:"The first paragraph of the message, on one line."`
	Message        string            `json:"message"`
	AuthorName     string            `json:"author_name"`
	AuthorEmail    string            `json:"author_email"`
	AuthoredDate   Time              `json:"authored_date"`
	CommitterName  string            `json:"committer_name"`
	CommitterEmail string            `json:"committer_email"`
	CommittedDate  Time              `json:"committed_date"`
	Trailers       map[string]string `json:"trailers" doc:"Trailers by key. If a trailer occurs more than once, the last one counts."`
	WebURL         string            `json:"web_url"`
}

// short is the length of a short id.
const short = 8

// Show returns a commit in the form of the REST API. projectURL is the URL of its project, without a slash at its end.
func Show(c *object.Commit, projectURL string) Commit {
	shown := Brief(c, projectURL)
	for _, t := range c.Trailers() {
		shown.Trailers[t.Key] = t.Value
	}
	return shown
}

// Brief is Show without the trailers.
func Brief(c *object.Commit, projectURL string) Commit {
	shown := Commit{
		ID: c.ID, ShortID: c.ID[:short], CreatedAt: Time(c.Committer.When), ParentIDs: c.Parents, Title: c.Title(), Message: c.Message,
		AuthorName: c.Author.Name, AuthorEmail: c.Author.Email, AuthoredDate: Time(c.Author.When),
		CommitterName: c.Committer.Name, CommitterEmail: c.Committer.Email, CommittedDate: Time(c.Committer.When),
		Trailers: map[string]string{}, WebURL: projectURL + "/-/commit/" + c.ID,
	}
	if shown.ParentIDs == nil {
		shown.ParentIDs = []string{}
	}
	return shown
}

// Time keeps the time zone of the author or committer. All other times of the API are in UTC.
type Time time.Time

// MarshalText writes the moment: ISO 8601 with milliseconds.
func (t Time) MarshalText() ([]byte, error) {
	return time.Time(t).AppendFormat(nil, "2006-01-02T15:04:05.000-07:00"), nil
}

// UnmarshalText reads what MarshalText writes.
func (t *Time) UnmarshalText(text []byte) error { return (*time.Time)(t).UnmarshalText(text) }
