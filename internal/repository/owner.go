package repository

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// owners is the directory of a shard with a file for the repository of each project, so that the repository can be retained whatever
// happens to the project. The file name is derived from the namespace and name of the project, which a later project can have too.
const owners = ".projects"

// annotationCluster is the annotation of a file in owners with the UID of the project's cluster. Objects that were restored in another
// cluster have other UIDs, which must not cause their repositories to be deleted.
const annotationCluster = "forgeplane.dev/cluster"

// Owner says to which project a repository belongs, according to its shard.
type Owner struct {
	// Retained is the object that is created for the repository when the project is gone.
	Retained *v1alpha1.RetainedRepository
	// Cluster is the UID of the cluster of the project.
	Cluster types.UID
	// Written is the time at which the file was written.
	Written time.Time

	file string
}

// Place is the location of a project.
type Place struct {
	// Namespace and Cluster are UIDs.
	Namespace, Cluster types.UID
}

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get,roleName=forgeplane-manager

// Cluster returns the identity of a cluster, which survives a restore of its etcd: the UID of the namespace kube-system.
func Cluster(ctx context.Context, live client.Reader) (types.UID, error) {
	var ns corev1.Namespace
	if err := live.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &ns); err != nil {
		return "", fmt.Errorf("reading namespace %s, by which the cluster is known: %w", metav1.NamespaceSystem, err)
	}
	return ns.UID, nil
}

// placeOf returns the location of the projects of a namespace.
func placeOf(ctx context.Context, live client.Reader, namespace string) (Place, error) {
	var ns corev1.Namespace
	if err := live.Get(ctx, client.ObjectKey{Name: namespace}, &ns); err != nil {
		return Place{}, fmt.Errorf("reading namespace %s: %w", namespace, err)
	}
	cluster, err := Cluster(ctx, live)
	return Place{Namespace: ns.UID, Cluster: cluster}, err
}

// RecordOwner records on its shard that the repository at the path of a project belongs to that project, unless that is recorded already. Call it
// before the repository exists. It calls place only if the project was not recorded before. The error is a git.ErrStorageMissing if the shard
// is not mounted.
func (r *Repositories) RecordOwner(ctx context.Context, p *v1alpha1.Project, place func(context.Context) (Place, error)) error {
	// If the machine crashes before the file is durable, Forgeplane writes it again when it starts.
	return r.own(ctx, p, false, place)
}

func (r *Repositories) own(ctx context.Context, p *v1alpha1.Project, durably bool, place func(context.Context) (Place, error)) error {
	s, err := r.catalog.Storage(ctx, p.Status.Storage)
	if err != nil {
		return err
	}
	file := ownerFile(s, OwnerName(p))
	var at Place
	// A file that cannot be read is replaced.
	if there, err := readOwner(s, file); err == nil && there != nil && there.Retained.Spec.Project.UID == string(p.UID) {
		at = Place{types.UID(there.Retained.Spec.Project.NamespaceUID), there.Cluster}
	} else if at, err = place(ctx); err != nil {
		return err
	}
	text, err := ownerText(p, at)
	if err != nil {
		return err
	}
	if there, err := os.ReadFile(file); err == nil && bytes.Equal(there, text) {
		return nil
	}
	if err := CheckMarker(s); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(s.Spec.Path, owners), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("recording which project the repository belongs to: %w", err)
	}
	if err := replace(file, text, durably); err != nil {
		return fmt.Errorf("recording which project the repository belongs to: %w", err)
	}
	return nil
}

// ownerText returns the content of the file, without what changes with each push.
func ownerText(p *v1alpha1.Project, at Place) ([]byte, error) {
	still := p.DeepCopy()
	still.Status.SizeBytes, still.Status.DefaultBranch = 0, ""
	retained := NewRetained(still, at.Namespace, p.Status.FullPath, time.Time{})
	rec := record{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "RetainedRepository"}, Spec: retained.Spec}
	rec.Metadata.Name, rec.Metadata.Annotations = retained.Name, map[string]string{annotationCluster: string(at.Cluster)}
	text, err := json.MarshalIndent(rec, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("recording which project the repository belongs to: %w", err)
	}
	return text, nil
}

// RemoveOwner removes the record that RecordOwner has written for a project. It does nothing if the record does not exist.
func (r *Repositories) RemoveOwner(ctx context.Context, p *v1alpha1.Project) error {
	s, err := r.catalog.Storage(ctx, p.Status.Storage)
	if err != nil {
		return err
	}
	file := ownerFile(s, OwnerName(p))
	// A file that cannot be read is removed.
	if there, err := readOwner(s, file); err == nil && (there == nil || there.Retained.Spec.Project.UID != string(p.UID)) {
		return nil
	}
	return forget(file)
}

// HasOwner reports whether a shard records that the repository at the path of a project belongs to it. The record exists before the repository
// does.
func (r *Repositories) HasOwner(ctx context.Context, p *v1alpha1.Project, storage string) (bool, error) {
	s, err := r.catalog.Storage(ctx, storage)
	if err != nil {
		return false, err
	}
	there, err := readOwner(s, ownerFile(s, OwnerName(p)))
	return there != nil && there.Retained.Spec.Project.UID == string(p.UID), err
}

// Forget removes the record from the shard, if it still exists.
func (o *Owner) Forget() error { return forget(o.file) }

func forget(file string) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the record of a repository on the shard: %w", err)
	}
	return nil
}

// Retained returns the records of all shards about the repositories of earlier projects with the namespace and name of a project. It skips
// shards that are not ready or cannot be read, because these must not keep projects off the other shards.
func (r *Repositories) Retained(ctx context.Context, p *v1alpha1.Project) (left []*Owner, err error) {
	storages, err := catalog.All[*v1alpha1.RepositoryStorage](ctx, r.catalog)
	if err != nil {
		return nil, err
	}
	for _, s := range storages {
		if meta.IsStatusConditionFalse(s.Status.Conditions, v1alpha1.ConditionReady) {
			continue
		}
		some, err := leftOn(s, p)
		if err != nil {
			log.FromContext(ctx).Error(err, "Failed to read a record of what an earlier project left behind", "storage", s.Name)
		}
		left = append(left, some...)
	}
	return left, nil
}

func leftOn(s *v1alpha1.RepositoryStorage, p *v1alpha1.Project) (left []*Owner, err error) {
	directory, prefix := filepath.Split(ownerPrefix(p.Namespace, p.Name))
	names, err := list(filepath.Join(s.Spec.Path, owners, directory))
	if err != nil {
		return nil, nil //nolint:nilerr // the condition of the shard says so
	}
	for _, name := range names {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		o, unread := ReadOwner(s, directory+name)
		err = errors.Join(err, unread)
		if o != nil && o.Retained.Spec.Project.UID != string(p.UID) {
			left = append(left, o)
		}
	}
	return left, err
}

// OwnerNames returns the names of a shard's owner files, in no order.
func OwnerNames(s *v1alpha1.RepositoryStorage) ([]string, error) {
	directories, err := list(filepath.Join(s.Spec.Path, owners))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, directory := range directories {
		some, err := list(filepath.Join(s.Spec.Path, owners, directory))
		if err != nil {
			return nil, err
		}
		for _, name := range some {
			if strings.HasSuffix(name, recordSuffix) {
				names = append(names, directory+"/"+name)
			}
		}
	}
	return names, nil
}

// list returns the names in a directory, or nothing if it does not exist. It does not read the entries, because there can be many.
func list(directory string) ([]string, error) {
	d, err := os.Open(directory)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing which projects the repositories belong to: %w", err)
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("listing which projects the repositories belong to: %w", err)
	}
	return names, nil
}

// OwnerName returns the name of the owner file for the repository of a project.
func OwnerName(p *v1alpha1.Project) string {
	return ownerPrefix(p.Namespace, p.Name) + strconv.FormatInt(p.RESTID(), 10) + recordSuffix
}

// ownerPrefix returns the prefix of the file names for all projects with a namespace and name.
func ownerPrefix(namespace, name string) string {
	sum := sha256.Sum256([]byte(namespace + "/" + name))
	digest := hex.EncodeToString(sum[:])
	return digest[:2] + "/" + digest[2:] + "-"
}

func ownerFile(s *v1alpha1.RepositoryStorage, name string) string {
	return filepath.Join(s.Spec.Path, owners, filepath.FromSlash(name))
}

// ReadOwner reads an owner file. It returns nil if the file is gone.
func ReadOwner(s *v1alpha1.RepositoryStorage, name string) (*Owner, error) {
	return readOwner(s, ownerFile(s, name))
}

func readOwner(s *v1alpha1.RepositoryStorage, file string) (*Owner, error) {
	rec, info, err := readFile(file)
	if rec == nil || err != nil {
		return nil, err
	}
	return &Owner{
		Retained: rec.retained(s), Cluster: types.UID(rec.Metadata.Annotations[annotationCluster]), Written: info.ModTime(), file: file,
	}, nil
}
