package repository

import (
	"context"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/git"
)

// RetainedFinalizer keeps a RetainedRepository until its repository is purged or a project has taken it over.
const RetainedFinalizer = "forgeplane.dev/retained-repository"

// NewRetained returns the RetainedRepository for the repository that a project leaves. Its name is derived from the same values as the path
// of the repository, so that there is only one for each repository.
func NewRetained(p *v1alpha1.Project, namespace types.UID, fullPath string, now time.Time) *v1alpha1.RetainedRepository {
	r := &v1alpha1.RetainedRepository{Spec: v1alpha1.RetainedRepositorySpec{
		Project: v1alpha1.FormerProject{
			Namespace: p.Namespace, NamespaceUID: string(namespace), Name: p.Name, UID: string(p.UID), ID: p.RESTID(),
			Path: p.Spec.Path, FullPath: fullPath, ImportURL: p.Spec.ImportURL, ObjectFormat: p.Spec.ObjectFormat,
			DefaultBranch: p.Status.DefaultBranch,
		},
		Storage: p.Status.Storage, SizeBytes: p.Status.SizeBytes, RetainedAt: metav1.NewTime(now),
	}}
	r.Name, r.Finalizers = retainedName(r.Spec), []string{RetainedFinalizer}
	return r
}

func retainedName(spec v1alpha1.RetainedRepositorySpec) string {
	was := spec.Project
	return v1alpha1.NaturalName(was.Namespace, was.Name, strconv.FormatInt(was.ID, 10))
}

// PathOfRetained returns the path of a retained repository on its shard, which is the path that it had in its project.
func PathOfRetained(r *v1alpha1.RetainedRepository) string {
	was := r.Spec.Project
	return pathOf(was.Namespace, was.Name, was.ID)
}

// OfRetained returns a retained repository, whether or not it exists. The error is catalog.ErrNotFound if the shard is not declared.
func (r *Repositories) OfRetained(ctx context.Context, retained *v1alpha1.RetainedRepository) (*git.Repository, error) {
	s, err := r.catalog.Storage(ctx, retained.Spec.Storage)
	if err != nil {
		return nil, err
	}
	return r.at(s, PathOfRetained(retained))
}
