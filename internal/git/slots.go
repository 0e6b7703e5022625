package git

import (
	"cmp"

	"github.com/forgeplane/forgeplane/internal/fair"
)

// maxArchives is the maximum number of archives that are written at once. Each uses up to one processor, depending on how fast its receiver
// is.
const maxArchives = 16

// maxBlobs is the maximum number of blobs that are written at once without being held in memory. Each needs a process.
const maxBlobs = 64

// Slots limit how many operations of each kind run at once, and share them among callers. Fields that are not set have defaults.
type Slots struct {
	// Archives and Blobs limit the archives and patches, and the blobs that are too large for memory, that are being written. Their duration
	// depends on how fast the receiver is.
	Archives, Blobs fair.Limits
	// Walks limit the commands that walk through history or compare: each can use up to one processor and much memory.
	Walks fair.Limits
}

// DefaultSlots returns the default slots: one caller can have a quarter of them, and a quarter is reserved for callers who have signed in.
func DefaultSlots() Slots {
	const share, reserved = 25, 25
	return Slots{
		Archives: fair.Of(maxArchives, share, reserved), Blobs: fair.Of(maxBlobs, share, reserved), Walks: fair.Of(maxWalks, share, reserved),
	}
}

// share creates the slots of an engine.
func (e *Engine) share(s Slots) {
	defaults := DefaultSlots()
	e.archives = fair.New("archives", "archives", cmp.Or(s.Archives, defaults.Archives))
	e.blobs = fair.New("blobs", "large files", cmp.Or(s.Blobs, defaults.Blobs))
	e.walks = fair.New("walks", "requests for history and comparisons", cmp.Or(s.Walks, defaults.Walks))
}

// Slots returns the slots of the engine, which are metrics collectors.
func (e *Engine) Slots() []*fair.Slots {
	return append([]*fair.Slots{e.archives, e.blobs, e.walks, e.readers.slots}, e.processes.Slots()...)
}
