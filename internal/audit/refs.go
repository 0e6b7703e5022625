package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"

	"github.com/forgeplane/forgeplane/internal/git/update"
)

// Ref is the update of a ref.
type Ref struct {
	// Ref is the update. If it is of HEAD, New is the name of a branch.
	update.Ref
	Result Result `json:"result"`
	// Reason says why this one is refused.
	Reason string `json:"reason,omitempty"`
}

// Rest stands for the refs that a write does not name.
type Rest struct {
	// Refs is how many they are, and Done how many of them were updated.
	Refs int `json:"refs"`
	Done int `json:"done"`
	// SHA256 is the digest of all refs of the write, those that are named included: a line of the old id, the new id and the name for
	// each of them, in their order.
	SHA256 string `json:"sha256"`

	all hash.Hash
}

// Limits for the refs in the lines of a write, because the caller chooses their number and their names. A refused write has one line.
const (
	maxRefs        = 100
	maxRefsRefused = maxListed
)

// Add adds refs: the first of them are named, and the rest is counted.
func (e *Event) Add(refs ...Ref) {
	for _, ref := range refs {
		if len(e.Refs) < maxRefs {
			e.Refs = append(e.Refs, ref)
			continue
		}
		if e.Rest == nil {
			e.Rest = restOf(e.Refs)
		}
		e.Rest.sum(ref)
		e.Rest.count(ref)
	}
}

// restOf counts nothing yet, and has what is named in its digest.
func restOf(named []Ref) *Rest {
	r := &Rest{all: sha256.New()}
	for _, ref := range named {
		r.sum(ref)
	}
	return r
}

func (r *Rest) sum(ref Ref) {
	_, _ = fmt.Fprintf(r.all, "%s %s %s\n", ref.Old, ref.New, ref.Name)
}

func (r *Rest) count(ref Ref) {
	r.Refs++
	if ref.Result == Done {
		r.Done++
	}
}

// bound has the event name no more refs than the log has of a write, in short texts.
func (e *Event) bound() {
	limit := maxRefs
	if e.Result == Refused {
		limit = maxRefsRefused
	}
	if e.Rest == nil && len(e.Refs) > limit {
		e.Rest = restOf(e.Refs)
	}
	named := e.Refs[:min(len(e.Refs), limit)]
	if e.Rest != nil {
		rest := *e.Rest
		for _, ref := range e.Refs[len(named):] {
			rest.count(ref)
		}
		rest.SHA256 = hex.EncodeToString(rest.all.Sum(nil))
		e.Rest = &rest
	}
	e.Refs = make([]Ref, len(named))
	for i, ref := range named {
		ref.Name, ref.Reason = clip(ref.Name, maxRef), clip(ref.Reason, maxRef)
		ref.Old, ref.New = clip(ref.Old, maxRef), clip(ref.New, maxRef)
		e.Refs[i] = ref
	}
}
