package item

// Discussed is an Item that people write notes on.
type Discussed interface {
	Item
	// Number is the internal id (iid) of the item.
	Number() int64
	// Locked says that only members of the project or group can write, change and resolve notes.
	Locked() bool
	// Resolvable says that discussions on items of this kind can be resolved.
	Resolvable() bool
}

// Number implements Discussed.
func (i Issue) Number() int64 { return i.IID }

// Locked implements Discussed.
func (i Issue) Locked() bool { return i.DiscussionLocked }

// Resolvable implements Discussed.
func (Issue) Resolvable() bool { return false }

// Number implements Discussed.
func (m MergeRequest) Number() int64 { return m.IID }

// Locked implements Discussed.
func (m MergeRequest) Locked() bool { return m.DiscussionIsLocked() }

// Resolvable implements Discussed.
func (MergeRequest) Resolvable() bool { return true }

// Number implements Discussed.
func (e Epic) Number() int64 { return e.IID }

// Locked implements Discussed.
func (Epic) Locked() bool { return false }

// Resolvable implements Discussed.
func (Epic) Resolvable() bool { return false }
