// Package claim has the rule that decides which of several objects holds something that only one of them can have: a full path, a username,
// a membership, the title of a label, the protection of a branch, an id. The holder keeps it: an object whose status and spec both show a
// claim outranks every other claimant. Age decides only while there is no holder.
//
// A claim has a canonical form, which is stored in status.claims. It contains the UIDs of its containers, so a rename of an ancestor
// changes nothing, and an object that is deleted and created again inherits nothing.
package claim

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// Claim is something that one object can hold to the exclusion of others. Two are equal when they exclude each other.
type Claim struct{ kind, within, name string }

// Path returns the claim of a group or project to a segment directly below a group with a UID, which is empty for the root. Case does not
// matter.
func Path(parent types.UID, segment string) Claim {
	return Claim{"path", string(parent), strings.ToLower(segment)}
}

// Username is the claim of a user to a username. Case does not matter.
func Username(username string) Claim { return Claim{"username", "", strings.ToLower(username)} }

// Email is the claim of a user to an address. Case does not matter.
func Email(address string) Claim { return Claim{"email", "", strings.ToLower(address)} }

// Kubernetes is the claim of a user to be whom a Kubernetes identity acts as.
func Kubernetes(username string) Claim { return Claim{"kubernetes", "", username} }

// Membership is the claim to say which role a user has in a group or project.
func Membership(target, user types.UID) Claim {
	return Claim{"membership", string(target), string(user)}
}

// Label is the claim to a title among the labels of a group or project.
func Label(target types.UID, title string) Claim { return Claim{"label", string(target), title} }

// Protection is the claim to protect a branch, or the branches of a wildcard, of a group or project.
func Protection(target types.UID, branch string) Claim {
	return Claim{"protection", string(target), branch}
}

// DefaultProtection is the claim of the protection that a project makes by itself. It does not stand in the way of Protection.
func DefaultProtection(target types.UID, branch string) Claim {
	return Claim{"defaultprotection", string(target), branch}
}

// JobTokenScope is the claim to say which job tokens a project lets in.
func JobTokenScope(project types.UID) Claim { return Claim{"jobtokenscope", string(project), ""} }

// DeployKey is the claim to a public key, by its fingerprint, among the deploy keys of a project.
func DeployKey(project types.UID, fingerprint string) Claim {
	return Claim{"deploykey", string(project), fingerprint}
}

// TokenSecret is the claim of a token to a key of a Secret in a namespace, which is empty for the Secrets of the platform.
func TokenSecret(namespace, secret, key string) Claim {
	return Claim{"tokensecret", namespace, secret + "/" + key}
}

// TokenValue is the claim of an access token to its value, by the digest.
func TokenValue(digest string) Claim { return Claim{"tokenvalue", "", digest} }

// BotTokenValue is the claim of a bot token to its value, by the digest.
func BotTokenValue(digest string) Claim { return Claim{"bottokenvalue", "", digest} }

// Variable is the claim to a key among the CI variables of a group or project with an environment scope. The target is empty for variables of
// the installation.
func Variable(target types.UID, key, environmentScope string) Claim {
	return Claim{"variable", string(target), key + "/" + environmentScope}
}

// Directory is the claim of a shard to a directory, by its cleaned absolute path.
func Directory(path string) Claim { return Claim{"directory", "", path} }

// String is the canonical form. It is unambiguous: neither a kind, nor a UID, nor a namespace has a slash.
func (c Claim) String() string { return c.kind + "/" + c.within + "/" + c.name }

// is reports whether a text is the canonical form, without making it.
func (c Claim) is(text string) bool {
	kind, rest, _ := strings.Cut(text, "/")
	within, name, ok := strings.Cut(rest, "/")
	return ok && kind == c.kind && within == c.within && name == c.name
}

// In reports whether the claim is one of those, in canonical form.
func (c Claim) In(all []string) bool {
	for _, text := range all {
		if c.is(text) {
			return true
		}
	}
	return false
}

// ShownBy reports whether the status of an object, whose spec shows the claim, shows it as well.
func (c Claim) ShownBy(o v1alpha1.Object) bool { return c.In(o.GetCommonStatus().Claims) }

// Release removes a claim from the status of an object.
func Release(o v1alpha1.Object, c Claim) {
	s := o.GetCommonStatus()
	if c.In(s.Claims) {
		s.Claims = slices.DeleteFunc(slices.Clone(s.Claims), c.is)
	}
}

// Holder returns which of the objects whose spec shows a claim holds it; the zero T when there are none.
func Holder[T v1alpha1.Object](claimants []T, c Claim) T {
	return first(claimants, func(o T) bool { return c.ShownBy(o) })
}

// HolderOfID is Holder for the claim to a REST id, which stands in status.id.
func HolderOfID[T v1alpha1.Identified](claimants []T, id int64) T {
	return first(claimants, func(o T) bool {
		_, status := o.IDs()
		return *status == id
	})
}

// first returns the object that goes before all others.
func first[T client.Object](all []T, shown func(T) bool) (found T) {
	if len(all) == 1 {
		return all[0]
	}
	foundShown := false
	for i, o := range all {
		if is := shown(o); i == 0 || Precedes(o, is, found, foundShown) {
			found, foundShown = o, is
		}
	}
	return found
}

// Precedes reports whether a holds a claim rather than b, given whether the status of each shows it. An object that is being deleted takes
// no new claims. Its status can show a claim that it gave up, so it goes after another object that shows the claim.
func Precedes(a client.Object, aShown bool, b client.Object, bShown bool) bool {
	if aShown != bShown {
		return aShown
	}
	if aStays := a.GetDeletionTimestamp().IsZero(); aStays != b.GetDeletionTimestamp().IsZero() {
		return aStays
	}
	return Older(a, b)
}

// Older reports whether a was created before b. If both were created in the same second, the smaller UID counts, so that every process
// decides alike.
func Older(a, b client.Object) bool {
	at, bt := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	if !at.Equal(&bt) {
		return at.Before(&bt)
	}
	return a.GetUID() < b.GetUID()
}
