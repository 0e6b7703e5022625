package activity

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// The kinds of subjects.
const (
	// KindLabel is that of labels.
	KindLabel = "label"
	// KindTriggerToken is that of trigger tokens.
	KindTriggerToken = "trigger_token"
	// KindUser is that of users, whose activities rows are.
	KindUser = "user"
)

// Subject is what an activity is about: an object of a kind, by its REST id and UID. The id is for people, and may come again; an
// object that is made anew under it has another UID, and nothing of what there is of the former one.
type Subject struct {
	Kind string
	ID   int64
	UID  types.UID
}

// User is whose an activity is, likewise by REST id and UID.
type User struct {
	ID  int64
	UID types.UID
}

// String returns the subject as messages name it.
func (s Subject) String() string { return fmt.Sprintf("%s %d", s.Kind, s.ID) }
