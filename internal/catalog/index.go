package catalog

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/claim"
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
	// IndexDigest holds the digests of access tokens and trigger tokens, and of the values in Secrets of trigger tokens.
	IndexDigest = "digest"
	// IndexSecret holds the names of the Secrets that access tokens are kept in, and SecretKey of those of trigger tokens and
	// mirrors.
	IndexSecret = "secret"
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
	// IndexGrantee holds the keys of the groups and deploy keys that a ProtectedBranch grants something to, and of the projects
	// that a JobTokenScope lets in.
	IndexGrantee = "grantee"
	// IndexBranch holds the key of the target of protections and the branch, joined.
	IndexBranch = "branch"
	// IndexLabel holds the key of the target of labels and the title, joined.
	IndexLabel = "label"
	// IndexTitle holds the titles of labels.
	IndexTitle = "title"
	// IndexMember holds the keys of the user and the target of a membership, joined.
	IndexMember = "member"
	// IndexCreator holds the REST ids of the users who have made groups and projects over REST, in decimal.
	IndexCreator = "creator"
	// IndexStorage holds the name of the shard that a project or a retained repository is on, empty before one was chosen.
	IndexStorage = "storage"
	// IndexFormer holds the keys of the deleted project that a retained repository was of: by its name, and by its full path.
	IndexFormer = "former"
	// IndexNamespace holds the namespace of the deleted project that a retained repository was of.
	IndexNamespace = "namespace"
	// IndexLeaving holds the namespace of a project that is being deleted.
	IndexLeaving = "leaving"
	// IndexAdopter holds the key of the project that an administrator gives a retained repository to, and the UID of the one that is
	// taking it over.
	IndexAdopter = "adopter"
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

// branchKey is the key of a protection of a branch of a target.
func branchKey(target, branch string) string { return target + "|" + branch }

// labelKey is the key of a label of a target by its title.
func labelKey(target, title string) string { return target + "|" + title }

// Both accounts keep every kind in memory, and the labels of namespaces.
// +kubebuilder:rbac:groups=forgeplane.dev,resources=accesstokens;badges;deploykeys;groups;jobtokenscopes;labels;memberships;projects;protectedbranches;remotemirrors;repositorystorages;triggertokens;users,verbs=list;watch,roleName=forgeplane-manager
// +kubebuilder:rbac:groups=forgeplane.dev,resources=accesstokens;badges;deploykeys;groups;jobtokenscopes;labels;memberships;projects;protectedbranches;remotemirrors;repositorystorages;triggertokens;users,verbs=list;watch,roleName=forgeplane-apiserver
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch,roleName=forgeplane-manager
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch,roleName=forgeplane-apiserver

// AddIndexes registers every index that a catalog reads, before the cache starts. Those of kinds that only the manager may read are left
// to AddManagerIndexes.
func AddIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	return addIndexes(ctx, indexer, indexes())
}

// AddManagerIndexes registers what AddIndexes leaves out, where controllers run.
func AddManagerIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	return addIndexes(ctx, indexer, retainedIndexes())
}

func addIndexes(ctx context.Context, indexer client.FieldIndexer, all []index) error {
	for _, i := range all {
		if err := indexer.IndexField(ctx, i.of, i.name, i.values); err != nil {
			return fmt.Errorf("adding index %s of %T: %w", i.name, i.of, err)
		}
	}
	return nil
}

type index struct {
	of     client.Object
	name   string
	values client.IndexerFunc
}

func indexes() []index {
	all := slices.Concat(
		callerIndexes(), placeIndexes(), membershipIndexes(), protectedBranchIndexes(), triggerTokenIndexes(), badgeIndexes(),
		jobTokenScopeIndexes(), labelIndexes(), creatorIndexes(),
	)
	for _, o := range []client.Object{
		&v1alpha1.User{}, &v1alpha1.AccessToken{}, &v1alpha1.Group{}, &v1alpha1.Project{}, &v1alpha1.DeployKey{},
		&v1alpha1.ProtectedBranch{}, &v1alpha1.TriggerToken{}, &v1alpha1.Badge{}, &v1alpha1.RemoteMirror{}, &v1alpha1.Label{},
	} {
		all = append(all, index{o, IndexID, specID})
	}
	for _, o := range []client.Object{
		&v1alpha1.User{}, &v1alpha1.AccessToken{}, &v1alpha1.Group{}, &v1alpha1.Project{}, &v1alpha1.Membership{}, &v1alpha1.DeployKey{},
		&v1alpha1.ProtectedBranch{}, &v1alpha1.TriggerToken{}, &v1alpha1.Label{}, &v1alpha1.JobTokenScope{},
	} {
		all = append(all, index{o, IndexHeld, func(o client.Object) []string { return o.(claim.Object).GetCommonStatus().Claims }})
	}
	return append(all,
		index{&v1alpha1.DeployKey{}, IndexProject, func(o client.Object) []string {
			return optional(o, &o.(*v1alpha1.DeployKey).Spec.ProjectRef)
		}},
		index{&v1alpha1.RemoteMirror{}, IndexProject, func(o client.Object) []string {
			return optional(o, &o.(*v1alpha1.RemoteMirror).Spec.ProjectRef)
		}},
		index{&v1alpha1.RemoteMirror{}, IndexSecret, func(o client.Object) []string {
			m := o.(*v1alpha1.RemoteMirror)
			if name := IssuedSecret(m); name != "" {
				return []string{IssuedKey(name)}
			}
			return secretKeys(m, m.Spec.SecretRef)
		}},
		index{&v1alpha1.Project{}, IndexSecret, func(o client.Object) []string {
			return secretKeys(o, o.(*v1alpha1.Project).Spec.ImportSecretRef)
		}})
}

// callerIndexes are those of users and of what they call with.
func callerIndexes() []index {
	return []index{
		{&v1alpha1.User{}, IndexUsername, func(o client.Object) []string {
			return some(strings.ToLower(o.(*v1alpha1.User).Spec.Username))
		}},
		{&v1alpha1.User{}, IndexEmail, func(o client.Object) []string {
			return some(strings.ToLower(o.(*v1alpha1.User).Spec.Email))
		}},
		{&v1alpha1.User{}, IndexKubernetes, func(o client.Object) []string {
			if k := o.(*v1alpha1.User).Spec.Kubernetes; k != nil {
				return some(k.Username)
			}
			return nil
		}},
		{&v1alpha1.AccessToken{}, IndexDigest, func(o client.Object) []string {
			return some(o.(*v1alpha1.AccessToken).Status.Digest)
		}},
		{&v1alpha1.AccessToken{}, IndexSecret, func(o client.Object) []string {
			if ref := o.(*v1alpha1.AccessToken).Spec.SecretRef; ref != nil {
				return []string{ref.Name}
			}
			return nil
		}},
		{&v1alpha1.AccessToken{}, IndexUser, func(o client.Object) []string {
			return []string{Key("", o.(*v1alpha1.AccessToken).Spec.UserRef)}
		}},
	}
}

// placeIndexes are those of groups and projects.
func placeIndexes() []index {
	return []index{
		{&v1alpha1.Group{}, IndexGroup, func(o client.Object) []string {
			return optional(o, o.(*v1alpha1.Group).Spec.ParentRef)
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
			return optional(o, &o.(*v1alpha1.Project).Spec.GroupRef)
		}},
		{&v1alpha1.Project{}, IndexClaim, func(o client.Object) []string {
			p := o.(*v1alpha1.Project)
			return []string{claimKey(Key(p.Namespace, p.Spec.GroupRef), p.Spec.Path)}
		}},
		{&v1alpha1.Project{}, IndexStorage, func(o client.Object) []string {
			return []string{o.(*v1alpha1.Project).Status.Storage}
		}},
	}
}

func membershipIndexes() []index {
	spec := func(o client.Object) v1alpha1.MembershipSpec { return o.(*v1alpha1.Membership).Spec }
	return []index{
		{&v1alpha1.Membership{}, IndexProject, func(o client.Object) []string { return optional(o, spec(o).ProjectRef) }},
		{&v1alpha1.Membership{}, IndexGroup, func(o client.Object) []string { return optional(o, spec(o).GroupRef) }},
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

func protectedBranchIndexes() []index {
	spec := func(o client.Object) v1alpha1.ProtectedBranchSpec { return o.(*v1alpha1.ProtectedBranch).Spec }
	return []index{
		{&v1alpha1.ProtectedBranch{}, IndexProject, func(o client.Object) []string { return optional(o, spec(o).ProjectRef) }},
		{&v1alpha1.ProtectedBranch{}, IndexGroup, func(o client.Object) []string { return optional(o, spec(o).GroupRef) }},
		{&v1alpha1.ProtectedBranch{}, IndexBranch, func(o client.Object) []string {
			target := cmp.Or(spec(o).ProjectRef, spec(o).GroupRef)
			if target == nil {
				return nil
			}
			return []string{branchKey(Key(o.GetNamespace(), *target), spec(o).Branch)}
		}},
		{&v1alpha1.ProtectedBranch{}, IndexUser, func(o client.Object) (keys []string) {
			for _, l := range levels(spec(o)) {
				if l.UserRef != nil {
					keys = append(keys, Key("", *l.UserRef))
				}
			}
			return keys
		}},
		{&v1alpha1.ProtectedBranch{}, IndexGrantee, func(o client.Object) (keys []string) {
			for _, l := range levels(spec(o)) {
				keys = append(keys, optional(o, l.GroupRef)...)
				keys = append(keys, optional(o, l.DeployKeyRef)...)
			}
			return keys
		}},
	}
}

func badgeIndexes() []index {
	spec := func(o client.Object) v1alpha1.BadgeSpec { return o.(*v1alpha1.Badge).Spec }
	return []index{
		{&v1alpha1.Badge{}, IndexProject, func(o client.Object) []string { return optional(o, spec(o).ProjectRef) }},
		{&v1alpha1.Badge{}, IndexGroup, func(o client.Object) []string { return optional(o, spec(o).GroupRef) }},
	}
}

func jobTokenScopeIndexes() []index {
	return []index{
		{&v1alpha1.JobTokenScope{}, IndexProject, func(o client.Object) []string {
			return optional(o, &o.(*v1alpha1.JobTokenScope).Spec.ProjectRef)
		}},
		{&v1alpha1.JobTokenScope{}, IndexGrantee, func(o client.Object) (keys []string) {
			for _, e := range o.(*v1alpha1.JobTokenScope).Spec.Allowlist {
				keys = append(keys, Key(o.GetNamespace(), e.ProjectRef))
			}
			return keys
		}},
	}
}

func labelIndexes() []index {
	spec := func(o client.Object) v1alpha1.LabelSpec { return o.(*v1alpha1.Label).Spec }
	return []index{
		{&v1alpha1.Label{}, IndexProject, func(o client.Object) []string { return optional(o, spec(o).ProjectRef) }},
		{&v1alpha1.Label{}, IndexGroup, func(o client.Object) []string { return optional(o, spec(o).GroupRef) }},
		{&v1alpha1.Label{}, IndexTitle, func(o client.Object) []string { return some(spec(o).Title) }},
		{&v1alpha1.Label{}, IndexLabel, func(o client.Object) []string {
			target := cmp.Or(spec(o).ProjectRef, spec(o).GroupRef)
			if target == nil {
				return nil
			}
			return []string{labelKey(Key(o.GetNamespace(), *target), spec(o).Title)}
		}},
	}
}

// levels returns all access levels of a protection.
func levels(spec v1alpha1.ProtectedBranchSpec) []v1alpha1.AccessLevel {
	all := make([]v1alpha1.AccessLevel, 0, len(spec.Push)+len(spec.Merge)+len(spec.Unprotect))
	all = append(all, spec.Push...)
	all = append(all, spec.Merge...)
	return append(all, spec.Unprotect...)
}

func specID(o client.Object) []string {
	id := o.(claim.Identified).RESTID()
	if id == 0 {
		return nil
	}
	return []string{strconv.FormatInt(id, 10)}
}

func some(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}

func optional(o client.Object, ref *v1alpha1.Reference) []string {
	if ref == nil {
		return nil
	}
	return []string{Key(o.GetNamespace(), *ref)}
}
