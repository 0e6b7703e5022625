package database

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// The kinds of subjects to which whole tables belong.
const (
	KindProject = "project"
	KindGroup   = "group"
)

// Subject identifies the object of a row by its kind, REST id and UID. The id is for people and can be reused. An object that is created
// again with the same id has another UID, and none of the rows of its predecessor.
type Subject struct {
	Kind string
	ID   int64
	UID  types.UID
}

// User identifies the user that a row belongs to, also by REST id and UID.
type User struct {
	ID  int64
	UID types.UID
}

// Label identifies a label of a row, also by REST id and UID.
type Label struct {
	ID  int64
	UID types.UID
}

// Item identifies a row that rows of other aggregates belong to, such as the issue of a note. Ids of items are never reused.
type Item struct {
	Kind string
	ID   int64
}

// String returns the subject as messages name it.
func (s Subject) String() string { return fmt.Sprintf("%s %d", s.Kind, s.ID) }

// String returns the item as messages name it.
func (i Item) String() string { return fmt.Sprintf("%s %d", i.Kind, i.ID) }
