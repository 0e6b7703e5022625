package avatar

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/blob"
)

// prefix is the prefix of the keys of all avatars.
const prefix = "avatars/"

// simultaneous is the maximum number of uploads that a Store decodes at once. One can use 90 MiB of memory: a progressive JPEG with four
// components has 16 bytes of coefficients and 4 bytes of color for each of its 4 million pixels.
const simultaneous = 1

// Store stores avatars in a blob store. status.avatar of an object has the name of its avatar. Each upload gets a new name, so what a name
// stands for never changes.
type Store struct {
	blobs *blob.Store
	slots chan struct{}
}

// NewStore returns the store of avatars in a blob store.
func NewStore(b *blob.Store) *Store {
	return &Store{blobs: b, slots: make(chan struct{}, simultaneous)}
}

// Decode is Decode for one of a limited number of uploads at once.
func (s *Store) Decode(ctx context.Context, upload io.ReadSeeker, size int64) ([]byte, error) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
		return Decode(upload, size)
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting to decode an avatar: %w", ctx.Err())
	}
}

// Add stores an avatar that Decode returned for an object, and returns its name.
func (s *Store) Add(ctx context.Context, of v1alpha1.Pictured, picture []byte) (name string, err error) {
	name = rand.Text()
	return name, s.blobs.Write(ctx, key(of, name), Type, picture)
}

// Get returns the avatar that an object has. The error is blob.ErrNotFound if it has none.
func (s *Store) Get(ctx context.Context, of v1alpha1.Pictured) ([]byte, error) {
	if *of.Avatar() == "" {
		return nil, blob.ErrNotFound
	}
	return s.blobs.Read(ctx, key(of, *of.Avatar()), maxStored)
}

// Remove removes an avatar of an object.
func (s *Store) Remove(ctx context.Context, of v1alpha1.Pictured, name string) error {
	return s.blobs.Remove(ctx, key(of, name))
}

// key returns the key of an avatar. The UID in it prevents that a later object has the avatar of an earlier one.
func key(of v1alpha1.Pictured, name string) string {
	return prefix + string(of.GetUID()) + "-" + name
}
