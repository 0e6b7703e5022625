package activity

import "fmt"

// The kinds of subjects.
const (
	// KindLabel is that of labels.
	KindLabel = "label"
	// KindTriggerToken is that of trigger tokens.
	KindTriggerToken = "trigger_token"
)

// Subject is what an activity is about: an object of a kind, by its REST id.
type Subject struct {
	Kind string
	ID   int64
}

// String returns the subject as messages name it.
func (s Subject) String() string { return fmt.Sprintf("%s %d", s.Kind, s.ID) }
