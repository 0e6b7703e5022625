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
	index := IndexGroup
	if _, ok := target.(*v1alpha1.Project); ok {
		index = IndexProject
	}
	keys := c.Keys(ctx, target)
	switch kind.(type) {
	case *v1alpha1.Label:
		return counted(c.labels(ctx, index, keys...))
	case *v1alpha1.Badge:
		return counted(c.badges(ctx, index, keys...))
	case *v1alpha1.ProtectedBranch:
		return counted(c.protectedBranches(ctx, index, keys...))
	case *v1alpha1.Membership:
		return counted(c.memberships(ctx, index, keys...))
	case *v1alpha1.TriggerToken:
		return counted(c.triggerTokens(ctx, index, keys...))
	case *v1alpha1.DeployKey:
		return counted(c.deployKeys(ctx, index, keys...))
	case *v1alpha1.RemoteMirror:
		return counted(c.remoteMirrors(ctx, index, keys...))
	default:
		return 0, nil
	}
}

func counted[T any](all []T, err error) (int, error) { return len(all), err }
