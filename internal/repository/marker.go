package repository

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/git"
)

// markerFile is a file in the root of a shard. The directory at which a volume is not mounted lacks it.
const markerFile = ".forgeplane-storage"

// maxMarker is the maximum size of the file, in bytes.
const maxMarker = 4 << 10

// Marker is the content of the file that says to which RepositoryStorage a volume belongs.
type Marker struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
}

// MarkerOf returns the marker that the volume of a shard must have.
func MarkerOf(s *v1alpha1.RepositoryStorage) Marker { return Marker{s.Name, s.UID} }

// String returns the content of the file.
func (m Marker) String() string { return fmt.Sprintf(`{"name":%q,"uid":%q}`, m.Name, m.UID) }

// MarkerPath returns the path of the file in which a shard has its marker.
func MarkerPath(s *v1alpha1.RepositoryStorage) string {
	return filepath.Join(s.Spec.Path, markerFile)
}

// Marked reports whether the volume of a shard has had the marker of the shard, so that a directory without it is not the volume.
func Marked(s *v1alpha1.RepositoryStorage) bool {
	return s.Status.MarkerUID != "" && s.Status.MarkerUID == string(s.UID)
}

// ReadMarker reads the marker in the directory of a shard. It returns nil if the directory has no marker.
func ReadMarker(s *v1alpha1.RepositoryStorage) (*Marker, error) {
	// The volume can have been written to by others: nothing that they put there leads elsewhere or blocks.
	f, err := os.OpenFile(MarkerPath(s), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the marker of the volume: %w", err)
	}
	defer f.Close()
	m, err := decodeMarker(f)
	if err != nil {
		return nil, fmt.Errorf("reading the marker %s of the volume: %w", f.Name(), err)
	}
	return m, nil
}

func decodeMarker(f *os.File) (*Marker, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxMarker {
		return nil, fmt.Errorf("it must be a file of at most %d bytes", maxMarker)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxMarker))
	if err != nil {
		return nil, err
	}
	var m Marker
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, err
	}
	if len(validation.IsDNS1123Subdomain(m.Name)) > 0 || m.UID == "" {
		return nil, errors.New("it must have the name and the uid of a RepositoryStorage")
	}
	return &m, nil
}

// Mark durably writes the marker of a shard into its directory. If the directory has a marker, it fails, or replaces the marker if takeOver is
// set.
func Mark(s *v1alpha1.RepositoryStorage, takeOver bool) error {
	// Each shard has its own name, so that the next attempt finds what a crash has left behind.
	staged := filepath.Join(s.Spec.Path, ".new-"+string(s.UID))
	if err := os.Remove(staged); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("marking the volume: %w", err)
	}
	f, err := os.OpenFile(staged, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("marking the volume: %w", err)
	}
	_, err = fmt.Fprintln(f, MarkerOf(s))
	err = errors.Join(err, f.Sync(), f.Close())
	place := os.Link // unlike a rename, this fails if another process has marked the volume
	if takeOver {
		place = os.Rename
	}
	if err == nil {
		err = place(staged, MarkerPath(s))
	}
	if errors.Is(err, unix.EPERM) || errors.Is(err, errors.ErrUnsupported) {
		err = os.Rename(staged, MarkerPath(s)) // the volume has no hard links
	}
	if removed := os.Remove(staged); !errors.Is(removed, fs.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	if err == nil {
		err = syncDirectory(s.Spec.Path)
	}
	if err != nil {
		return fmt.Errorf("marking the volume: %w", err)
	}
	return nil
}

// Unmark removes the marker of a shard from its directory. It does nothing if the directory has no marker, or the marker of another shard.
func Unmark(s *v1alpha1.RepositoryStorage) error {
	if err := CheckMarker(s); err != nil {
		return nil //nolint:nilerr // the file is not the marker of this shard
	}
	if err := os.Remove(MarkerPath(s)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the marker of the volume: %w", err)
	}
	return nil
}

// CheckMarker returns an error, which is a git.ErrStorageMissing, unless the directory of a shard has the marker of the shard.
func CheckMarker(s *v1alpha1.RepositoryStorage) error {
	m, err := ReadMarker(s)
	return JudgeMarker(s, m, err)
}

// JudgeMarker is CheckMarker for the results of ReadMarker.
func JudgeMarker(s *v1alpha1.RepositoryStorage, m *Marker, err error) error {
	switch {
	case err != nil:
		return unavailable{fmt.Errorf("the volume of storage %s is not available: %w", s.Name, err)}
	case m == nil:
		return unavailable{fmt.Errorf("the volume of storage %s is not available: mount it at %s, which should have the file %s",
			s.Name, s.Spec.Path, markerFile)}
	case *m != MarkerOf(s):
		return unavailable{fmt.Errorf("the volume of storage %s is not available: according to its file %s, the volume at %s belongs to RepositoryStorage %s with the UID %s",
			s.Name, markerFile, s.Spec.Path, m.Name, m.UID)}
	}
	return nil
}

// unavailable is a git.ErrStorageMissing with its own message.
type unavailable struct{ error }

// Is makes the error a git.ErrStorageMissing.
func (unavailable) Is(target error) bool { return target == git.ErrStorageMissing }

// Unwrap returns the error with the message.
func (u unavailable) Unwrap() error { return u.error }

// Mounted is CheckMarker for the name of a shard.
func (r *Repositories) Mounted(ctx context.Context, storage string) error {
	s, err := r.catalog.Storage(ctx, storage)
	if err != nil {
		return err
	}
	return CheckMarker(s)
}

// at returns the repository at a path on a shard. If the volume of the shard is away, the repository counts as out of reach, and not as gone.
func (r *Repositories) at(s *v1alpha1.RepositoryStorage, path string) (*git.Repository, error) {
	repo, err := r.engine.Repository(s.Spec.Path, path)
	if err == nil && Marked(s) {
		repo.Guard(func() error { return CheckMarker(s) })
	}
	return repo, err
}
