package repository

import (
	"context"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/naturalkey"
)

// RetainedFinalizer keeps a RetainedRepository until its repository is purged or has gone over to a project.
const RetainedFinalizer = "forgeplane.dev/retained-repository"

// NewRetained returns the record of the repository that a project leaves. It is named after what the path of the repository is made
// of, so that there are no two of one repository.
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
	return naturalkey.Name(was.Namespace, was.Name, strconv.FormatInt(was.ID, 10))
}

// PathOfRetained is where a retained repository is on its shard: where that of its project was.
func PathOfRetained(r *v1alpha1.RetainedRepository) string {
	was := r.Spec.Project
	return pathOf(was.Namespace, was.Name, was.ID)
}

// OfRetained returns a retained repository, whether it exists or not. It gives catalog.ErrNotFound when the shard is not declared.
func (r *Repositories) OfRetained(ctx context.Context, retained *v1alpha1.RetainedRepository) (*git.Repository, error) {
	s, err := catalog.Get[*v1alpha1.RepositoryStorage](ctx, r.catalog, "", retained.Spec.Storage)
	if err != nil {
		return nil, err
	}
	return r.engine.Repository(s.Spec.Path, PathOfRetained(retained))
}
