package virtual

import (
	"context"
	"errors"
	"maps"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Resource describes a virtual resource. Its objects are in namespaces.
type Resource struct {
	// Singular is the singular name, and ShortNames are further names for kubectl.
	Singular   string
	ShortNames []string
	// New and NewList return an empty object and an empty list. The name of the object's type is the kind.
	New     func() client.Object
	NewList func() client.ObjectList
	// Columns are the columns of tables, after the name.
	Columns []Column
	// Fields returns the values by which clients can select an object, in addition to its name and namespace. The names of the fields
	// must be the same for all objects.
	Fields func(client.Object) fields.Set
	Source Source
}

// Column is a column of a table.
type Column struct {
	metav1.TableColumnDefinition
	// Cell returns the value for an object.
	Cell func(client.Object) any
}

// Source has the objects of a resource. A revision counts the changes of all objects, beginning at 1. The resource version of an object is the
// revision of its last change, in decimal digits. Sources of several processes must agree on the revisions.
type Source interface {
	// Get returns an object, or ErrNotFound.
	Get(ctx context.Context, namespace, name string) (client.Object, error)
	// List returns the objects of a query in the order of their places.
	List(ctx context.Context, q Query) (Page, error)
	// Changes returns the changes after a revision, the oldest first, with the objects as they are after the change, or were before they
	// were deleted. namespace is empty for all. It also returns the revision up to which these are all changes, and whether more changes can
	// follow at once. The error is ErrExpired if the source no longer knows all changes after the revision, or does not know the revision itself.
	Changes(ctx context.Context, namespace string, after int64) (changes []watch.Event, revision int64, more bool, err error)
}

// Errors of a Source.
var (
	ErrNotFound = errors.New("the object does not exist")
	ErrExpired  = errors.New("the changes since this resource version are not known: list the objects again")
)

// Query selects objects.
type Query struct {
	// Namespace is empty for all namespaces.
	Namespace string
	// Selector selects by metadata.name, metadata.namespace and the fields of the resource.
	Selector fields.Selector
	// After is the place of the last object of the previous page, or empty.
	After string
	// Limit is the maximum number of objects, or 0 for all.
	Limit int64
}

// Page has the objects of a query.
type Page struct {
	Objects []client.Object
	// Next is the place of the last object if more follow. A place is a path such as namespace/name, without a slash at its ends.
	Next string
	// Revision is the revision of the last change that the objects include, or an earlier one.
	Revision int64
}

func (r Resource) kind() string { return reflect.TypeOf(r.New()).Elem().Name() }

// fields returns all fields by which clients can select an object.
func (r Resource) fields(obj client.Object) fields.Set {
	if r.Fields == nil {
		return WithMetadata(obj, nil)
	}
	return WithMetadata(obj, r.Fields(obj))
}

// The fields by which clients can select every object.
const (
	FieldName      = "metadata.name"
	FieldNamespace = "metadata.namespace"
)

// WithMetadata adds the name and the namespace of an object to the other fields by which clients can select it, for the Source.
func WithMetadata(obj client.Object, others fields.Set) fields.Set {
	all := fields.Set{FieldName: obj.GetName(), FieldNamespace: obj.GetNamespace()}
	maps.Copy(all, others)
	return all
}
