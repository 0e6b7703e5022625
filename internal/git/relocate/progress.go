package relocate

import "time"

// Phase is a phase of a move.
type Phase string

// The phases, in their order.
const (
	Copying   Phase = "Copying"
	Closing   Phase = "Closing"
	Finishing Phase = "Finishing"
	Verifying Phase = "Verifying"
	Switching Phase = "Switching"
)

// Progress is the progress of a move.
type Progress struct {
	Phase Phase
	// Bytes are the bytes that were copied, TotalBytes those of the source when the move began or more, and Objects the objects that were
	// copied.
	Bytes, TotalBytes, Objects int64
}

// reportEvery is the shortest interval between reports within a phase.
const reportEvery = 250 * time.Millisecond

// reporter reports progress.
type reporter struct {
	tell func(Progress)
	so   Progress
	last time.Time
}

// enter begins a phase.
func (r *reporter) enter(p Phase) {
	r.so.Phase = p
	r.report()
}

// add adds to what was copied.
func (r *reporter) add(bytes, objects int64) {
	r.so.Bytes += bytes
	r.so.Objects += objects
	r.so.TotalBytes = max(r.so.TotalBytes, r.so.Bytes)
	if time.Since(r.last) >= reportEvery {
		r.report()
	}
}

func (r *reporter) report() {
	r.last = time.Now()
	if r.tell != nil {
		r.tell(r.so)
	}
}
