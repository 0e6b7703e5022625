// Package update describes the updates of refs. It needs no other package of Forgeplane, so that the hook, which git starts at each push,
// can use it.
package update

import "strings"

// Ref is the update of a ref. An empty or all-zero object id stands for a ref that does not exist.
type Ref struct {
	// Name is the full name. In a push, only Git has checked it, so it need not be valid UTF-8.
	Name string `json:"name"`
	// Old is the current object id, and New the requested one.
	Old string `json:"old,omitempty"`
	New string `json:"new,omitempty"`
}

// Creates reports whether the update creates a ref.
func (u Ref) Creates() bool { return absent(u.Old) && !u.Deletes() }

// Deletes reports whether the update deletes a ref.
func (u Ref) Deletes() bool { return absent(u.New) }

// Expects reports whether the update is meant for a ref with this object id.
func (u Ref) Expects(id string) bool { return same(u.Old, id) }

// Made reports whether a ref with this object id has been updated.
func (u Ref) Made(id string) bool { return same(u.New, id) }

func same(a, b string) bool { return a == b || absent(a) && absent(b) }

func absent(id string) bool { return strings.Trim(id, "0") == "" }
