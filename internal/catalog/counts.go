package catalog

import (
	"context"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// creatorIndexes are those of what users have made over REST.
func creatorIndexes() []Index {
	creator := func(o client.Object) []string { return Text(o.GetLabels()[v1alpha1.LabelCreator]) }
	return []Index{{&v1alpha1.Project{}, IndexCreator, creator}, {&v1alpha1.Group{}, IndexCreator, creator}}
}

// ProjectsMadeBy returns how many projects of a namespace a user has made, by the REST id.
func (c *Catalog) ProjectsMadeBy(ctx context.Context, namespace string, user int64) (int, error) {
	all, err := List[*v1alpha1.Project](ctx, c, IndexCreator, strconv.FormatInt(user, 10))
	return countIn(namespace, all), err
}

// GroupsMadeBy returns how many groups of a namespace a user has made, by the REST id.
func (c *Catalog) GroupsMadeBy(ctx context.Context, namespace string, user int64) (int, error) {
	all, err := List[*v1alpha1.Group](ctx, c, IndexCreator, strconv.FormatInt(user, 10))
	return countIn(namespace, all), err
}

// countIn counts the objects of a namespace: labels of others anybody can write who may write there.
func countIn[T client.Object](namespace string, all []T) int {
	number := 0
	for _, o := range all {
		if o.GetNamespace() == namespace {
			number++
		}
	}
	return number
}

// CountOf returns how many objects of the kind of one belong to a project or group: anybody can name it in what they declare.
func (c *Catalog) CountOf(ctx context.Context, kind v1alpha1.Targeted, target client.Object) (number int, err error) {
	index := IndexGroup
	if _, ok := target.(*v1alpha1.Project); ok {
		index = IndexProject
	}
	err = Each(ctx, c, kind.NewList(), index, c.Keys(ctx, target), func(o client.Object) {
		if Belongs(o, target) {
			number++
		}
	})
	return number, err
}
