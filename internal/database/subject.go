package database

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// Subject is what a row is about: an object of a kind, by its REST id and UID. The id is for people, and may come again; an object
// that is made anew under it has another UID, and nothing of what there is of the former one.
type Subject struct {
	Kind string
	ID   int64
	UID  types.UID
}

// User is whose a row is, likewise by REST id and UID.
type User struct {
	ID  int64
	UID types.UID
}

// String returns the subject as messages name it.
func (s Subject) String() string { return fmt.Sprintf("%s %d", s.Kind, s.ID) }
