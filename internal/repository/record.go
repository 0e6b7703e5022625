package repository

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// records is the directory of a shard with a file for each of its retained repositories, so that the shard alone says to whom they
// belonged. Files are named after the directories of the repositories.
const (
	records      = ".retained"
	recordSuffix = ".json"
)

// maxRecord is the maximum size of such a file, in bytes.
const maxRecord = 64 << 10

// record is a RetainedRepository in the form of a manifest.
type record struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name        string            `json:"name"`
		Annotations map[string]string `json:"annotations,omitempty"`
	} `json:"metadata"`
	Spec v1alpha1.RetainedRepositorySpec `json:"spec"`
}

func recordFile(s *v1alpha1.RepositoryStorage, path string) string {
	return filepath.Join(s.Spec.Path, records, recordName(path))
}

func recordName(path string) string {
	return strings.TrimSuffix(filepath.Base(path), ".git") + recordSuffix
}

// Record records the former owner of a retained repository on its shard, unless the shard has the record already. The error is a git.ErrStorageMissing if
// the shard is not mounted.
func (r *Repositories) Record(ctx context.Context, retained *v1alpha1.RetainedRepository) error {
	s, err := r.catalog.Storage(ctx, retained.Spec.Storage)
	if err != nil {
		return err
	}
	rec := record{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "RetainedRepository"}, Spec: retained.Spec}
	rec.Metadata.Name, rec.Spec.AdoptBy = retained.Name, nil
	text, err := json.MarshalIndent(rec, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the record of %s: %w", retained.Name, err)
	}
	file := recordFile(s, PathOfRetained(retained))
	if there, err := os.ReadFile(file); err == nil && bytes.Equal(there, text) {
		return nil
	}
	if err := CheckMarker(s); err != nil {
		return err
	}
	if err := replace(file, text, true); err != nil {
		return fmt.Errorf("writing the record of %s: %w", retained.Name, err)
	}
	return nil
}

// Forget removes the record that Record has written. It does nothing if there is none.
func (r *Repositories) Forget(ctx context.Context, retained *v1alpha1.RetainedRepository) error {
	s, err := r.catalog.Storage(ctx, retained.Spec.Storage)
	if err != nil {
		return err
	}
	if err := os.Remove(recordFile(s, PathOfRetained(retained))); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the record of %s: %w", retained.Name, err)
	}
	return nil
}

// Recorded returns the record of a shard about a repository at the path of a project, or nil if there is none.
func (r *Repositories) Recorded(ctx context.Context, storage string, p *v1alpha1.Project) (*v1alpha1.RetainedRepository, error) {
	s, err := r.catalog.Storage(ctx, storage)
	if err != nil {
		return nil, err
	}
	return readRecord(s, recordFile(s, Path(p)))
}

// RecordNames returns the names of a shard's record files for retained repositories.
func RecordNames(s *v1alpha1.RepositoryStorage) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(s.Spec.Path, records))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing the retained repositories of %s: %w", s.Name, err)
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), recordSuffix) && e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// RecordName returns the name of the record file of a retained repository.
func RecordName(retained *v1alpha1.RetainedRepository) string {
	return recordName(PathOfRetained(retained))
}

// ReadRecord returns the RetainedRepository that a record file describes, or nil if the file is gone.
func ReadRecord(s *v1alpha1.RepositoryStorage, name string) (*v1alpha1.RetainedRepository, error) {
	return readRecord(s, filepath.Join(s.Spec.Path, records, name))
}

func readRecord(s *v1alpha1.RepositoryStorage, file string) (*v1alpha1.RetainedRepository, error) {
	rec, _, err := readFile(file)
	if rec == nil || err != nil {
		return nil, err
	}
	return rec.retained(s), nil
}

// readFile reads a file. It returns nil if the file is gone.
func readFile(file string) (*record, fs.FileInfo, error) {
	info, err := os.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err == nil && info.Size() > maxRecord {
		err = errors.New("it is too long")
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(file)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	var rec record
	if err == nil {
		err = json.Unmarshal(text, &rec)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading the record %s of a repository: %w", file, err)
	}
	return &rec, info, nil
}

// retained returns the RetainedRepository of a record on the given shard.
func (rec *record) retained(s *v1alpha1.RepositoryStorage) *v1alpha1.RetainedRepository {
	// The shard may have another name now.
	rec.Spec.Storage = s.Name
	retained := &v1alpha1.RetainedRepository{Spec: rec.Spec}
	retained.Name, retained.Finalizers = retainedName(rec.Spec), []string{RetainedFinalizer}
	return retained
}

// replace replaces a file atomically, and durably if that is requested.
func replace(file string, text []byte, durably bool) error {
	directory := filepath.Dir(file)
	if err := os.Mkdir(directory, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	staged, err := os.CreateTemp(directory, ".new-*")
	if err != nil {
		return err
	}
	_, err = staged.Write(text)
	if durably {
		err = errors.Join(err, staged.Sync())
	}
	err = errors.Join(err, staged.Close())
	if err == nil {
		err = os.Rename(staged.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(staged.Name()))
	}
	if !durably {
		return nil
	}
	return syncDirectory(directory)
}

func syncDirectory(directory string) error {
	d, err := os.Open(directory)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
