package catalog

import (
	"context"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// creatorIndexes are those of what users have made over REST.
func creatorIndexes() []index {
	creator := func(o client.Object) []string { return some(o.GetLabels()[v1alpha1.LabelCreator]) }
	return []index{{&v1alpha1.Project{}, IndexCreator, creator}, {&v1alpha1.Group{}, IndexCreator, creator}}
}

// ProjectsMadeBy returns how many projects of a namespace a user has made, by the REST id.
func (c *Catalog) ProjectsMadeBy(ctx context.Context, namespace string, user int64) (int, error) {
	all, err := c.projects(ctx, IndexCreator, strconv.FormatInt(user, 10))
	return countIn(namespace, all), err
}

// GroupsMadeBy returns how many groups of a namespace a user has made, by the REST id.
func (c *Catalog) GroupsMadeBy(ctx context.Context, namespace string, user int64) (int, error) {
	all, err := c.groups(ctx, IndexCreator, strconv.FormatInt(user, 10))
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

// CountOf returns how many objects of the kind of one belong to a project or group.
func (c *Catalog) CountOf(ctx context.Context, kind, target client.Object) (int, error) {
	switch kind.(type) {
	case *v1alpha1.Label:
		return countOf(ctx, c, target, c.labels)
	case *v1alpha1.Badge:
		return countOf(ctx, c, target, c.badges)
	case *v1alpha1.ProtectedBranch:
		return countOf(ctx, c, target, c.protectedBranches)
	case *v1alpha1.Membership:
		return countOf(ctx, c, target, c.memberships)
	case *v1alpha1.TriggerToken:
		return countOf(ctx, c, target, c.triggerTokens)
	case *v1alpha1.DeployKey:
		return countOf(ctx, c, target, c.deployKeys)
	case *v1alpha1.RemoteMirror:
		return countOf(ctx, c, target, c.remoteMirrors)
	default:
		return 0, nil
	}
}

// countOf counts those of a kind that belong to the target: anybody can name it in what they declare.
func countOf[T client.Object](ctx context.Context, c *Catalog, target client.Object,
	list func(ctx context.Context, index string, keys ...string) ([]T, error),
) (int, error) {
	index := IndexGroup
	if _, ok := target.(*v1alpha1.Project); ok {
		index = IndexProject
	}
	found, err := list(ctx, index, c.Keys(ctx, target)...)
	return len(belonging(found, target)), err
}
