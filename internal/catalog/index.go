package catalog

import (
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// The indexes of the cache. Their values are keys from Key and Keys, or the plain text that each comment names.
const (
	// IndexID holds the spec.id, in decimal, of every kind that has one, or the status.id while a replace has dropped the spec.id.
	IndexID = "spec.id"
	// IndexUsername holds the lower-case usernames of users.
	IndexUsername = "username"
	// IndexEmail holds the lower-case addresses of users.
	IndexEmail = "email"
	// IndexKubernetes holds the Kubernetes identities of users.
	IndexKubernetes = "kubernetes"
	// IndexPathClaim holds the parent's key and the segment of groups and projects, to find all that claim a full path.
	IndexPathClaim = "claim"
	// IndexHeld holds the claims in status.claims.
	IndexHeld = "held"
	// IndexUser holds the keys of the users that an object refers to.
	IndexUser = "user"
	// IndexGroup holds the key of the group that an object belongs to.
	IndexGroup = "group"
	// IndexProject holds the key of the project that an object belongs to.
	IndexProject = "project"
	// IndexMember holds the keys of the user and the target of a membership, joined.
	IndexMember = "member"
	// IndexCreator holds the REST ids, in decimal, of the users who created groups and projects over REST.
	IndexCreator = "creator"
	// IndexRESTWrites holds the spec.restWrites of the groups and projects that declare one, joined with the key of the group above.
	IndexRESTWrites = "rest-writes"
	// IndexInvited holds the keys of the groups that groups and projects are shared with.
	IndexInvited = "invited"
	// IndexForkOf holds the key of the project that the forkOf of a project names, and IndexOrigin the UID of the project of which it is a fork.
	IndexForkOf = "fork-of"
	IndexOrigin = "origin"
	// IndexStorage holds the name of the shard of a project. It is empty until the status names one; then it also holds the shard on which
	// the repository may already have been created.
	IndexStorage = "storage"
	// IndexUID and IndexNamespace hold the UIDs and namespaces of projects.
	IndexUID       = "uid"
	IndexNamespace = "namespace"
)

// Key returns the index key of a reference in an object of this namespace.
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

// claimKey returns the key of a claim to a segment below the parent with a key. The parent's key is empty for root groups.
func claimKey(parent, segment string) string { return parent + "|" + strings.ToLower(segment) }

// memberKey returns the key of a user's membership in a target.
func memberKey(user, target string) string { return user + "|" + target }

// Both service accounts watch namespaces for their labels, and the kinds of rights.go.
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch,roleName=forgeplane-manager
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch,roleName=forgeplane-apiserver

// Index is an index of the cache.
type Index struct {
	Of     client.Object
	Name   string
	Values client.IndexerFunc
}

// Indexes returns the indexes of groups, projects and users, and the indexes that every kind has because of its interfaces. Indexes for the
// lookups of a single kind are in the package of that kind.
func Indexes() []Index {
	all := slices.Concat(
		userIndexes(), placeIndexes(), membershipIndexes(), creatorIndexes(), restWritesIndexes(), shareIndexes(), forkIndexes(), uidIndexes(),
	)
	for _, kind := range v1alpha1.Kinds() {
		all = append(all, kindIndexes(kind)...)
	}
	return all
}

// kindIndexes returns the indexes that a kind has because of its interfaces.
func kindIndexes(kind v1alpha1.Object) (all []Index) {
	if _, managers := kind.(*v1alpha1.RetainedRepository); managers {
		return nil
	}
	all = append(all, Index{kind, IndexHeld, func(o client.Object) []string { return o.(v1alpha1.Object).GetCommonStatus().Claims }})
	if _, ok := kind.(v1alpha1.Identified); ok {
		all = append(all, Index{kind, IndexID, specID})
	}
	if _, ok := kind.(v1alpha1.Targeted); ok {
		keys := func(of bool, o client.Object) []string {
			if !of {
				return nil
			}
			return TargetKeys(o)
		}
		refs := func(o client.Object) (project, group *v1alpha1.Reference) { return o.(v1alpha1.Targeted).TargetRefs() }
		all = append(all,
			Index{kind, IndexProject, func(o client.Object) []string { project, _ := refs(o); return keys(project != nil, o) }},
			Index{kind, IndexGroup, func(o client.Object) []string { _, group := refs(o); return keys(group != nil, o) }})
	}
	return all
}

// userIndexes returns the indexes by which users are found.
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

// placeIndexes returns the indexes of groups and projects.
func placeIndexes() []Index {
	return []Index{
		{&v1alpha1.Group{}, IndexGroup, func(o client.Object) []string {
			return RefKeys(o, o.(*v1alpha1.Group).Spec.ParentRef)
		}},
		{&v1alpha1.Group{}, IndexPathClaim, func(o client.Object) []string {
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
		{&v1alpha1.Project{}, IndexPathClaim, func(o client.Object) []string {
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
		{&v1alpha1.Membership{}, IndexMember, func(o client.Object) (keys []string) {
			for _, target := range TargetKeys(o) {
				keys = append(keys, memberKey(Key("", spec(o).UserRef), target))
			}
			return keys
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

// Text returns the index value of a text, or no value for an empty text.
func Text(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}

// RefKeys returns the key of a reference in an object; none if the reference is nil.
func RefKeys(o client.Object, ref *v1alpha1.Reference) []string {
	if ref == nil {
		return nil
	}
	return []string{Key(o.GetNamespace(), *ref)}
}
