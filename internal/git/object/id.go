package object

import "fmt"

// IsID reports whether s has the form of an object id, SHA-1 or SHA-256.
func IsID(s string) bool {
	if len(s) != 40 && len(s) != 64 {
		return false
	}
	for _, c := range []byte(s) { // long lists contain too many ids for a regular expression
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// CheckIDs returns an error if one of the ids does not have the form of an object id.
func CheckIDs(ids ...string) error {
	for _, id := range ids {
		if !IsID(id) {
			return fmt.Errorf("%q is not an object id", id)
		}
	}
	return nil
}

// EmptyTree returns the id of the tree without entries, which every repository has, in the format of another id.
func EmptyTree(like string) string {
	if len(like) == 40 {
		return "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
	}
	return "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"
}

// The prefixes of the names of branches and tags.
const (
	BranchPrefix = "refs/heads/"
	TagPrefix    = "refs/tags/"
)

// FormatOf returns the object format whose ids have the length of an id: "sha1" or "sha256".
func FormatOf(id string) string { return map[int]string{40: "sha1", 64: "sha256"}[len(id)] }
