package virtual

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/table"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	registry "k8s.io/apiserver/pkg/storage"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// storage serves a resource. It has no method that writes, so the generic API server answers writes with 405.
type storage struct {
	Resource
	resource schema.GroupResource
}

var (
	_ rest.Storage              = (*storage)(nil)
	_ rest.Scoper               = (*storage)(nil)
	_ rest.SingularNameProvider = (*storage)(nil)
	_ rest.ShortNamesProvider   = (*storage)(nil)
	_ rest.Getter               = (*storage)(nil)
	_ rest.Lister               = (*storage)(nil)
	_ rest.Watcher              = (*storage)(nil)
)

// New implements rest.Storage.
func (s *storage) New() runtime.Object { return s.Resource.New() }

// NewList implements rest.Lister.
func (s *storage) NewList() runtime.Object { return s.Resource.NewList() }

// Destroy implements rest.Storage. The source is not the storage's own.
func (*storage) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (*storage) NamespaceScoped() bool { return true }

// GetSingularName implements rest.SingularNameProvider.
func (s *storage) GetSingularName() string { return s.Singular }

// ShortNames implements rest.ShortNamesProvider.
func (s *storage) ShortNames() []string { return s.Resource.ShortNames }

// Get implements rest.Getter.
func (s *storage) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	obj, err := s.Source.Get(ctx, request.NamespaceValue(ctx), name)
	if errors.Is(err, ErrNotFound) {
		return nil, apierrors.NewNotFound(s.resource, name)
	}
	return obj, err
}

// List implements rest.Lister.
func (s *storage) List(ctx context.Context, o *metainternal.ListOptions) (runtime.Object, error) {
	q, err := queryOf(ctx, o)
	if err != nil {
		return nil, err
	}
	if o.ResourceVersionMatch == metav1.ResourceVersionMatchExact {
		return nil, apierrors.NewResourceExpired("only the newest objects are known: leave out resourceVersionMatch=Exact")
	}
	var first int64
	if o.Continue != "" {
		if q.After, first, err = registry.DecodeContinue(o.Continue, ""); err != nil {
			return nil, apierrors.NewBadRequest("the continue token is invalid: " + err.Error())
		}
	}
	page, err := s.Source.List(ctx, q)
	if err != nil {
		return nil, err
	}
	if first == 0 {
		first = page.Revision
	}
	return s.list(page, first)
}

// list returns a list of the objects of a page. A watch must begin at the revision of the first page, because the objects of that page can
// have changed since.
func (s *storage) list(page Page, revision int64) (runtime.Object, error) {
	list := s.Resource.NewList()
	items := make([]runtime.Object, len(page.Objects))
	for i, obj := range page.Objects {
		items[i] = obj
	}
	if err := meta.SetList(list, items); err != nil {
		return nil, fmt.Errorf("making a list: %w", err)
	}
	list.SetResourceVersion(strconv.FormatInt(revision, 10))
	if page.Next != "" {
		token, err := registry.EncodeContinue("/"+page.Next, "/", revision)
		if err != nil {
			return nil, fmt.Errorf("making a continue token: %w", err)
		}
		list.SetContinue(token)
	}
	return list, nil
}

// ConvertToTable implements rest.TableConvertor.
func (s *storage) ConvertToTable(_ context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	t := &metav1.Table{}
	if m, err := meta.CommonAccessor(obj); err == nil {
		t.ResourceVersion = m.GetResourceVersion()
	}
	if list, err := meta.ListAccessor(obj); err == nil {
		t.Continue = list.GetContinue()
	}
	if o, is := options.(*metav1.TableOptions); !is || !o.NoHeaders {
		t.ColumnDefinitions = append(t.ColumnDefinitions, metav1.TableColumnDefinition{
			Name: "Name", Type: "string", Format: "name", Description: "Name of the object.",
		})
		for _, c := range s.Columns {
			t.ColumnDefinitions = append(t.ColumnDefinitions, c.TableColumnDefinition)
		}
	}
	var err error
	t.Rows, err = table.MetaToTableRow(obj, func(obj runtime.Object, _ metav1.Object, name, _ string) ([]any, error) {
		cells := []any{name}
		for _, c := range s.Columns {
			cells = append(cells, c.Cell(obj.(client.Object)))
		}
		return cells, nil
	})
	return t, err
}

// queryOf returns the query of a request, without its place.
func queryOf(ctx context.Context, o *metainternal.ListOptions) (Query, error) {
	if o.LabelSelector != nil && !o.LabelSelector.Empty() {
		return Query{}, apierrors.NewBadRequest("label selectors are not supported: use a field selector")
	}
	q := Query{Namespace: request.NamespaceValue(ctx), Selector: fields.Everything(), Limit: o.Limit}
	if o.FieldSelector != nil {
		q.Selector = o.FieldSelector
	}
	return q, nil
}
