package ids

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// DeclareRole is the name of the Role in the namespace of the platform that the ValidatingAdmissionPolicy pin.forgeplane.dev asks for. Its
// bindings, one for each namespace of tenants, record which objects can be created with which ids. Their subjects are service accounts that
// do not exist: the namespace is the UID of the tenant's namespace, because a namespace that is created again can belong to another tenant,
// and the name is made of the kind, the name and the id of an object, as in label.bug.17.
const DeclareRole = "forgeplane-declared-ids"

// maxSubject is the maximum length of the name of a ServiceAccount.
const maxSubject = 253

// indexRecorded has the kinds and ids that a RoleBinding records.
const indexRecorded = "recorded"

// Declarer is an object that can be created with an id, by its kind in lower case, and its name.
type Declarer struct{ Kind, Name string }

// DeclarerOf returns the name of obj in the record of its namespace.
func (a *Allocator) DeclarerOf(obj client.Object) (Declarer, error) {
	kind, err := a.kind(obj)
	return Declarer{strings.ToLower(kind), obj.GetName()}, err
}

// BindingKey returns the key of the RoleBinding that has the record of a namespace.
func (a *Allocator) BindingKey(namespace string) client.ObjectKey {
	return client.ObjectKey{Namespace: a.namespace, Name: DeclareRole + "." + namespace}
}

// RecordedNamespace returns the namespace whose record a RoleBinding has, or "" if it has none.
func RecordedNamespace(binding client.Object) string {
	namespace, _ := strings.CutPrefix(binding.GetName(), DeclareRole+".")
	if namespace == binding.GetName() {
		return ""
	}
	return namespace
}

// Record returns the ids that the subjects of a RoleBinding record for a namespace.
func Record(subjects []rbacv1.Subject, namespace types.UID) map[Declarer]int64 {
	record := map[Declarer]int64{}
	for _, s := range subjects {
		if d, id, ok := parse(s.Name); ok && s.Namespace == string(namespace) {
			record[d] = id
		}
	}
	return record
}

// Subject returns the subject that records an id of an object. It reports false if the name of the object is too long.
func Subject(namespace types.UID, d Declarer, id int64) (rbacv1.Subject, bool) {
	name := fmt.Sprintf("%s.%s.%d", d.Kind, d.Name, id)
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: string(namespace), Name: name}, len(name) <= maxSubject
}

func parse(subject string) (d Declarer, id int64, ok bool) {
	kind, rest, _ := strings.Cut(subject, ".")
	end := strings.LastIndex(rest, ".")
	if end < 0 {
		return d, 0, false
	}
	id, err := strconv.ParseInt(rest[end+1:], 10, 64)
	return Declarer{kind, rest[:end]}, id, err == nil
}

// Compare is for sorting.
func (d Declarer) Compare(o Declarer) int {
	return cmp.Or(cmp.Compare(d.Kind, o.Kind), cmp.Compare(d.Name, o.Name))
}

// Indexes returns the index of the RoleBindings, which only the managers can read.
func Indexes() []catalog.Index {
	return []catalog.Index{{Of: &rbacv1.RoleBinding{}, Name: indexRecorded, Values: func(o client.Object) (keys []string) {
		if RecordedNamespace(o) == "" {
			return nil
		}
		for _, s := range o.(*rbacv1.RoleBinding).Subjects {
			if d, id, ok := parse(s.Name); ok {
				keys = append(keys, recordKey(d.Kind, id))
			}
		}
		return keys
	}}}
}

func recordKey(kind string, id int64) string { return fmt.Sprintf("%s.%d", kind, id) }

// Recorded returns the names of the objects of the kind of obj that can be created with an id according to the records.
func (a *Allocator) Recorded(ctx context.Context, obj client.Object, id int64) (names []types.NamespacedName, err error) {
	of, err := a.DeclarerOf(obj)
	if err != nil {
		return nil, err
	}
	var bindings rbacv1.RoleBindingList
	key := recordKey(of.Kind, id)
	if err := a.cache.List(ctx, &bindings, client.MatchingFields{indexRecorded: key}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("looking up the record of id %d: %w", id, err)
	}
	for i := range bindings.Items {
		for _, s := range bindings.Items[i].Subjects {
			if d, recorded, ok := parse(s.Name); ok && d.Kind == of.Kind && recorded == id {
				names = append(names, types.NamespacedName{Namespace: RecordedNamespace(&bindings.Items[i]), Name: d.Name})
			}
		}
	}
	return names, nil
}

// Former returns the name of another object that can still be created with an id because it had the id before obj, or "".
func (a *Allocator) Former(ctx context.Context, obj v1alpha1.Identified, id int64) (string, error) {
	if obj.GetNamespace() == "" {
		return "", nil // nothing is recorded of these kinds
	}
	recorded, err := a.Recorded(ctx, obj, id)
	i := slices.IndexFunc(recorded, func(n types.NamespacedName) bool { return n != client.ObjectKeyFromObject(obj) })
	if err != nil || i < 0 {
		return "", err
	}
	return recorded[i].String(), nil
}
