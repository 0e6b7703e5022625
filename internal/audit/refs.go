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
	// Ref is the update. For HEAD, New is the name of a branch.
	update.Ref
	Result Result `json:"result"`
	// Reason is the reason for the refusal of this update.
	Reason string `json:"reason,omitempty"`
}

// Rest summarizes the refs that an event omits.
type Rest struct {
	// Refs is the number of omitted refs, and Done is the number of those that were updated.
	Refs int `json:"refs"`
	Done int `json:"done"`
	// SHA256 is the digest of all refs of the write, including those in Refs. It covers a line with the old id, the new id and the name of
	// each ref, in their order.
	SHA256 string `json:"sha256"`

	all hash.Hash
}

// Limits for the refs in the lines of a write, because the caller chooses their number and their names. A refused write has one line.
const (
	maxRefs        = 100
	maxRefsRefused = maxListed
)

// Add adds refs. It only counts refs beyond the limit.
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

// restOf returns a Rest with counts of zero, whose digest covers the named refs.
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

// bound applies the limits of the log to the number of refs and the length of their texts.
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
