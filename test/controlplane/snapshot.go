package controlplane

import (
	"context"
	"fmt"
	"strings"
	"time"
)

const (
	// leases has the leases of kube-apiserver, which it renews all the time.
	leases = registry + "leases/kube-system/"
	// quiet is the time without writes after which the start of a control plane has ended.
	quiet = time.Second
	// restores limits how often Restore looks again for differences. Controllers of Kubernetes can still write while the first are removed.
	restores = 20
)

// Snapshot has the objects that a control plane had at some time.
type Snapshot struct {
	values map[string][]byte
	// revisions are the revisions at which the values were written.
	revisions map[string]int64
}

// Snapshot waits until nothing has been written for a second, and returns all objects.
func (c *ControlPlane) Snapshot(ctx context.Context) (*Snapshot, error) {
	s := &Snapshot{}
	for {
		all, err := c.everything(ctx, true)
		if err != nil {
			return nil, fmt.Errorf("taking a snapshot: %w", err)
		}
		before := s.revisions
		s.values, s.revisions = map[string][]byte{}, map[string]int64{}
		same := len(before) == len(all)
		for _, o := range all {
			s.values[string(o.Key)], s.revisions[string(o.Key)] = o.Value, o.Revision
			same = same && before[string(o.Key)] == o.Revision
		}
		if same {
			return s, nil
		}
		select {
		case <-time.After(quiet):
		case <-ctx.Done():
			return nil, fmt.Errorf("taking a snapshot: %w", ctx.Err())
		}
	}
}

// Restore gives the control plane the objects of a snapshot, and no others. It writes to etcd, and kube-apiserver and its clients see the deletions
// and changes as those of any other writer, but without grace: no finalizer delays a deletion. No client must write meanwhile.
func (c *ControlPlane) Restore(ctx context.Context, s *Snapshot) error {
	for range restores {
		changes, err := c.restore(ctx, s)
		if err != nil {
			return fmt.Errorf("restoring a snapshot: %w", err)
		}
		if changes == 0 {
			return nil
		}
	}
	return fmt.Errorf("restoring a snapshot: something was written again after each of %d attempts", restores)
}

// restore writes what differs from the snapshot, and returns the number of writes.
func (c *ControlPlane) restore(ctx context.Context, s *Snapshot) (changes int, err error) {
	all, err := c.everything(ctx, false)
	if err != nil {
		return 0, err
	}
	kept := map[string]bool{}
	for _, o := range all {
		key := string(o.Key)
		if _, known := s.values[key]; !known {
			changes++
			if err := c.remove(ctx, o.Key); err != nil {
				return changes, err
			}
		}
		kept[key] = o.Revision == s.revisions[key]
	}
	for key, value := range s.values {
		if kept[key] {
			continue
		}
		changes++
		var written struct {
			Header struct {
				Revision int64 `json:"revision,string"`
			} `json:"header"`
		}
		if err := c.askEtcd(ctx, "/v3/kv/put", map[string]any{"key": []byte(key), "value": value}, &written); err != nil {
			return changes, err
		}
		s.revisions[key] = written.Header.Revision
	}
	return changes, nil
}

// everything returns all objects, except for leases.
func (c *ControlPlane) everything(ctx context.Context, values bool) ([]stored, error) {
	all, err := c.readEtcd(ctx, registry, values)
	kept := all[:0]
	for _, o := range all {
		if !strings.HasPrefix(string(o.Key), leases) {
			kept = append(kept, o)
		}
	}
	return kept, err
}
