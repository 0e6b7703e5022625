package catalog

import (
	"context"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// creatorIndexes returns the indexes of objects that users have created over REST.
func creatorIndexes() []Index {
	creator := func(o client.Object) []string { return Text(o.GetLabels()[v1alpha1.LabelCreator]) }
	return []Index{{&v1alpha1.Project{}, IndexCreator, creator}, {&v1alpha1.Group{}, IndexCreator, creator}}
}

// ProjectsMadeBy returns the number of projects that a user has created in a namespace. user is a REST id.
func (c *Catalog) ProjectsMadeBy(ctx context.Context, namespace string, user int64) (int, error) {
	all, err := List[*v1alpha1.Project](ctx, c, IndexCreator, strconv.FormatInt(user, 10))
	return countIn(namespace, all), err
}

// GroupsMadeBy returns the number of groups that a user has created in a namespace. user is a REST id.
func (c *Catalog) GroupsMadeBy(ctx context.Context, namespace string, user int64) (int, error) {
	all, err := List[*v1alpha1.Group](ctx, c, IndexCreator, strconv.FormatInt(user, 10))
	return countIn(namespace, all), err
}

// countIn counts the objects of a namespace. Objects of other namespaces do not count, because their tenants can set any label.
func countIn[T client.Object](namespace string, all []T) int {
	number := 0
	for _, o := range all {
		if o.GetNamespace() == namespace {
			number++
		}
	}
	return number
}

// CountOf returns the number of objects of a kind that belong to a project or group. References alone do not count, because any tenant can
// declare them.
func (c *Catalog) CountOf(ctx context.Context, kind v1alpha1.Targeted, target client.Object) (number int, err error) {
	index := IndexGroup
	if _, ok := target.(*v1alpha1.Project); ok {
		index = IndexProject
	}
	err = ForEachByIndex(ctx, c, kind, func() client.ObjectList { return kind.NewList() }, index, c.Keys(ctx, target), func(o client.Object) {
		if Belongs(o, target) {
			number++
		}
	})
	return number, err
}
