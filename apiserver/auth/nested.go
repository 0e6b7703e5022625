package auth

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

// In is a record in another record, which the path names before it, as in /projects/{id}/issues/{issue_iid}/notes/{note_id}. Inside finds it.
// The outer record can be an In itself. If it is Placed, the inner record is in the same project.
type In[P, T Kept] struct {
	Outer  P
	Record T
}

// Parameter implements Kept.
func (In[P, T]) Parameter() string { return (*new(T)).Parameter() }

// Owner returns the owner of the inner record.
func (i In[P, T]) Owner() types.UID { return i.Record.Owner() }

// nested is an In of any types.
type nested interface {
	parameters() []endpoint.Parameter
	outer() Kept
	inner() Kept
}

func (In[P, T]) parameters() []endpoint.Parameter {
	return append(parametersOf[P](), parametersOf[T]()...)
}
func (i In[P, T]) outer() Kept { return i.Outer }
func (i In[P, T]) inner() Kept { return i.Record }

func outermost(k Kept) Kept {
	for n, is := k.(nested); is; n, is = k.(nested) {
		k = n.outer()
	}
	return k
}

func innermost(k Kept) Kept {
	for n, is := k.(nested); is; n, is = k.(nested) {
		k = n.inner()
	}
	return k
}

// as returns a record, or the innermost record of an In, as a K.
func as[K any](record Kept) (K, bool) {
	if k, is := record.(K); is {
		return k, true
	}
	k, is := innermost(record).(K)
	return k, is
}

// mustBe panics if records of the type T are not of the type K.
func mustBe[T Kept, K any]() {
	if _, is := as[K](*new(T)); !is {
		panic(fmt.Sprintf("auth: a %T is not a %s", *new(T), reflect.TypeFor[K]()))
	}
}

// Nested finds a record in another one; see Inside.
type Nested[T Kept] func(ctx context.Context, q *search) (T, error)

// Inside returns the value for endpoint.Found that finds a record in another record. outer finds the outer record, and inner the record in it, by
// the id in the path. Both answer as a Find does. The Subject of inner has the project of the outer record, if it is in one. K is the type of the
// outer record or an interface of it, so that inner can serve collections of several kinds of records. For an In, inner gets the inner record of
// that.
func Inside[P, T Kept, K any, O Find[P] | Nested[P]](outer O, inner func(ctx context.Context, s Subject, in K, id int64) (T, error)) Nested[In[P, T]] {
	mustBe[P, K]()
	find := finderOf[P](outer)
	return func(ctx context.Context, q *search) (found In[P, T], err error) {
		last := len(q.ids) - 1
		around := *q
		around.ids = q.ids[:last]
		found.Outer, err = find(ctx, &around)
		if q.missed = around.missed; err != nil {
			return found, err
		}
		in, _ := as[K](found.Outer)
		found.Record, err = inner(ctx, *q.subject, in, q.ids[last])
		return found, err
	}
}

// search is the search for a record and the records around it.
type search struct {
	guard   *Guard
	subject *Subject
	form    form
	// ids are the ids in the path, the outermost first.
	ids []int64
	// missed says that the caller must not know whether the outermost record exists.
	missed bool
}

// finderOf returns the finder of a record that the value of endpoint.Found is; nil if it does not find such a record.
func finderOf[T Kept](by any) Nested[T] {
	switch find := by.(type) {
	case Nested[T]:
		return find
	case Find[T]:
		return func(ctx context.Context, q *search) (T, error) {
			record, err := find(ctx, *q.subject, q.ids[0])
			if err == nil && q.form.about == aboutRecord {
				err = q.guard.place(ctx, q.subject, record)
			}
			var answer *endpoint.Error
			q.missed = errors.As(err, &answer) && q.form.missing != nil
			return record, err
		}
	default:
		return nil
	}
}

// Holder is a form of subjects that are records of the type T.
type Holder[T Kept] interface {
	Record[T] | ProjectRecord[T] | GroupRecord[T]
	About() Subject
	record() T
}

func (r Record[T]) record() T        { return r.Record }
func (r ProjectRecord[T]) record() T { return r.Record }
func (r GroupRecord[T]) record() T   { return r.Record }

// OnRecord adapts a handler of several kinds of records, such as all records that have reactions, to the form of an endpoint. K is the type of
// the record or an interface of it. For an In, the handler gets the inner record.
func OnRecord[S Holder[T], T Kept, K, Req, Resp any](handler func(ctx context.Context, s Subject, record K, request *Req) (Resp, error)) endpoint.Func[S, Req, Resp] {
	mustBe[T, K]()
	return func(ctx context.Context, s S, r *Req) (Resp, error) {
		record, _ := as[K](s.record())
		return handler(ctx, s.About(), record, r)
	}
}
