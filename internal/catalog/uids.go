package catalog

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

func uidIndexes() []Index {
	return []Index{
		{&v1alpha1.Project{}, IndexUID, func(o client.Object) []string { return Text(string(o.GetUID())) }},
		{&v1alpha1.Project{}, IndexNamespace, func(o client.Object) []string { return Text(o.GetNamespace()) }},
	}
}

// ProjectsWithUIDs returns the projects with some UIDs, uncopied and by UID. It leaves out missing ones.
func (c *Catalog) ProjectsWithUIDs(ctx context.Context, uids ...types.UID) (map[types.UID]*v1alpha1.Project, error) {
	keys := make([]string, len(uids))
	for n, uid := range uids {
		keys[n] = string(uid)
	}
	return byUID(List[*v1alpha1.Project](ctx, c, IndexUID, keys...))
}

// ProjectsInNamespace returns the projects of a namespace, uncopied and by UID.
func (c *Catalog) ProjectsInNamespace(ctx context.Context, namespace string) (map[types.UID]*v1alpha1.Project, error) {
	return byUID(List[*v1alpha1.Project](ctx, c, IndexNamespace, namespace))
}

func byUID(all []*v1alpha1.Project, err error) (map[types.UID]*v1alpha1.Project, error) {
	by := make(map[types.UID]*v1alpha1.Project, len(all))
	for _, p := range all {
		by[p.UID] = p
	}
	return by, err
}
