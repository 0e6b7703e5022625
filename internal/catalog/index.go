package catalog

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// The indexes of the cache. Their values are keys as Key and Keys give them, or the plain text that is named.
const (
	// IndexID holds spec.id, in decimal, of every kind that has one; the one of status.id while a replace has dropped it.
	IndexID = "spec.id"
	// IndexUsername holds the lower-case usernames of users.
	IndexUsername = "username"
	// IndexEmail holds the lower-case addresses of users.
	IndexEmail = "email"
	// IndexKubernetes holds the Kubernetes identities of users.
	IndexKubernetes = "kubernetes"
	// IndexClaim holds the parent's key and the own segment of groups and projects: who claims which full path.
	IndexClaim = "claim"
	// IndexHeld holds what status.claims shows.
	IndexHeld = "held"
	// IndexUser holds the keys of the users that an object refers to.
	IndexUser = "user"
	// IndexGroup holds the key of the group that an object belongs to.
	IndexGroup = "group"
	// IndexProject holds the key of the project that an object belongs to.
	IndexProject = "project"
	// IndexMember holds the keys of the user and the target of a membership, joined.
	IndexMember = "member"
	// IndexCreator holds the REST ids of the users who have made groups and projects over REST, in decimal.
	IndexCreator = "creator"
	// IndexStorage holds the name of the shard that a project is on. It is empty before the status names one, and the shard on which the
	// repository may have been made by then has the project too.
	IndexStorage = "storage"
)

// Key is the index key of a reference that stands in an object of this namespace.
func Key(namespace string, ref v1alpha1.Reference) string {
	switch {
	case ref.Name != "":
		return nameKey(namespace, ref.Name)
	case ref.Path != "":
		return pathKey(ref.Path)
	default:
		return idKey(ref.ID)
	}
}

func nameKey(namespace, name string) string { return "n:" + namespace + "/" + name }
func pathKey(fullPath string) string        { return "p:" + strings.ToLower(fullPath) }
func idKey(id int64) string                 { return "i:" + strconv.FormatInt(id, 10) }

// claimKey is the key of a claim to a segment below the parent of that key; the key is empty for root groups.
func claimKey(parent, segment string) string { return parent + "|" + strings.ToLower(segment) }

// memberKey is the key of a membership of a user in a target.
func memberKey(user, target string) string { return user + "|" + target }

// Both accounts keep the labels of namespaces in memory, and the kinds of rights.go.
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch,roleName=forgeplane-manager
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch,roleName=forgeplane-apiserver

// Index is an index of the cache.
type Index struct {
	Of     client.Object
	Name   string
	Values client.IndexerFunc
}

// Indexes are those of the tree and of users, and those that every kind has by what it is. The package of a kind has those that are for
// its own look-ups.
func Indexes() []Index {
	all := slices.Concat(
		userIndexes(), placeIndexes(), membershipIndexes(), creatorIndexes(),
	)
	for _, kind := range v1alpha1.Kinds() {
		all = append(all, kindIndexes(kind)...)
	}
	return all
}

// kindIndexes are those that a kind has by what it is.
func kindIndexes(kind v1alpha1.Object) (all []Index) {
	if _, managers := kind.(*v1alpha1.RetainedRepository); managers {
		return nil
	}
	all = append(all, Index{kind, IndexHeld, func(o client.Object) []string { return o.(v1alpha1.Object).GetCommonStatus().Claims }})
	if _, ok := kind.(v1alpha1.Identified); ok {
		all = append(all, Index{kind, IndexID, specID})
	}
	if _, ok := kind.(v1alpha1.Targeted); ok {
		refs := func(o client.Object) (project, group *v1alpha1.Reference) { return o.(v1alpha1.Targeted).TargetRefs() }
		all = append(all,
			Index{kind, IndexProject, func(o client.Object) []string { project, _ := refs(o); return RefKeys(o, project) }},
			Index{kind, IndexGroup, func(o client.Object) []string { _, group := refs(o); return RefKeys(o, group) }})
	}
	return all
}

// userIndexes are those by which users are known.
func userIndexes() []Index {
	return []Index{
		{&v1alpha1.User{}, IndexUsername, func(o client.Object) []string {
			return Text(strings.ToLower(o.(*v1alpha1.User).Spec.Username))
		}},
		{&v1alpha1.User{}, IndexEmail, func(o client.Object) []string {
			return Text(strings.ToLower(o.(*v1alpha1.User).Spec.Email))
		}},
		{&v1alpha1.User{}, IndexKubernetes, func(o client.Object) []string {
			if k := o.(*v1alpha1.User).Spec.Kubernetes; k != nil {
				return Text(k.Username)
			}
			return nil
		}},
	}
}

// placeIndexes are those of groups and projects.
func placeIndexes() []Index {
	return []Index{
		{&v1alpha1.Group{}, IndexGroup, func(o client.Object) []string {
			return RefKeys(o, o.(*v1alpha1.Group).Spec.ParentRef)
		}},
		{&v1alpha1.Group{}, IndexClaim, func(o client.Object) []string {
			g := o.(*v1alpha1.Group)
			parent := ""
			if g.Spec.ParentRef != nil {
				parent = Key(g.Namespace, *g.Spec.ParentRef)
			}
			return []string{claimKey(parent, g.Spec.Path)}
		}},
		{&v1alpha1.Project{}, IndexGroup, func(o client.Object) []string {
			return RefKeys(o, &o.(*v1alpha1.Project).Spec.GroupRef)
		}},
		{&v1alpha1.Project{}, IndexClaim, func(o client.Object) []string {
			p := o.(*v1alpha1.Project)
			return []string{claimKey(Key(p.Namespace, p.Spec.GroupRef), p.Spec.Path)}
		}},
		{&v1alpha1.Project{}, IndexStorage, func(o client.Object) []string {
			p := o.(*v1alpha1.Project)
			return append(Text(p.PlannedStorage()), p.Status.Storage)
		}},
	}
}

func membershipIndexes() []Index {
	spec := func(o client.Object) v1alpha1.MembershipSpec { return o.(*v1alpha1.Membership).Spec }
	return []Index{
		{&v1alpha1.Membership{}, IndexUser, func(o client.Object) []string { return []string{Key("", spec(o).UserRef)} }},
		{&v1alpha1.Membership{}, IndexMember, func(o client.Object) []string {
			target := cmp.Or(spec(o).ProjectRef, spec(o).GroupRef)
			if target == nil {
				return nil
			}
			return []string{memberKey(Key("", spec(o).UserRef), Key(o.GetNamespace(), *target))}
		}},
	}
}

func specID(o client.Object) []string {
	id := o.(v1alpha1.Identified).RESTID()
	if id == 0 {
		return nil
	}
	return []string{strconv.FormatInt(id, 10)}
}

// Text is the value of an index of plain text: none where it is empty.
func Text(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}

// RefKeys is the key of a reference that stands in an object; none where it is nil.
func RefKeys(o client.Object, ref *v1alpha1.Reference) []string {
	if ref == nil {
		return nil
	}
	return []string{Key(o.GetNamespace(), *ref)}
}
