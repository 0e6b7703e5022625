package auth

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/role"
)

// Own is the rule that a record is the caller's own.
const Own endpoint.Rule = "own"

// Kept is what a request can be about beside projects and groups: something that has an id.
type Kept interface {
	// Parameter says in a sentence what the parameter is that names it, for the OpenAPI document. It is asked of the zero value.
	Parameter() string
	// Owner is the uid of the user whose it is, such as its author; empty where it is nobody's.
	Owner() types.UID
}

// Placed is a Kept that is in a project, where the path does not say in which.
type Placed interface {
	// ProjectID is the id of the project; 0 where it is in none.
	ProjectID() int64
	// Missing is the answer where there is no such record, and to callers who must not see its project. It is asked of the zero value.
	Missing() *endpoint.Error
}

// Record is the form of endpoints that are about what their path names by its id, as in /snippets/{id}. endpoint.Found has the Find that
// finds it. An ability is that of the project that the record is in, if it is Placed, or one about the instance.
type Record[T Kept] struct {
	Subject
	Record T
}

// ProjectRecord is Record for what is in the project that the path names before, as in /projects/{id}/snippets/{snippet_id}.
type ProjectRecord[T Kept] struct {
	Subject
	Record T
}

// GroupRecord is ProjectRecord for what is in a group.
type GroupRecord[T Kept] struct {
	Subject
	Record T
}

// User is the form of endpoints that are about a user whom their path names by the id. An ability is one about the instance.
type User struct {
	Subject
	User *v1alpha1.User
}

// Find finds a record by its id. The error is the answer where there is none, to those who may know.
type Find[T Kept] = func(ctx context.Context, s Subject, id int64) (T, error)

func parameter[T Kept]() endpoint.Parameter {
	return endpoint.Parameter{Doc: (*new(T)).Parameter(), Integer: true}
}

// Parameters implements endpoint.Located.
func (Record[T]) Parameters() []endpoint.Parameter {
	return []endpoint.Parameter{parameter[T]()}
}

// Parameters implements endpoint.Located.
func (ProjectRecord[T]) Parameters() []endpoint.Parameter {
	return append(Project{}.Parameters(), parameter[T]())
}

// Parameters implements endpoint.Located.
func (GroupRecord[T]) Parameters() []endpoint.Parameter {
	return append(Group{}.Parameters(), parameter[T]())
}

// Parameters implements endpoint.Located.
func (User) Parameters() []endpoint.Parameter {
	return []endpoint.Parameter{parameter[person]()}
}

// person is a user as a record of their own.
type person struct{ *v1alpha1.User }

func (person) Parameter() string  { return "Id of the user." }
func (p person) Owner() types.UID { return p.UID }

func recordForm[T Kept](about subject, of func(s Subject, record T) any) form {
	return form{
		about: about,
		of:    func(s Subject, record any) any { return of(s, record.(T)) },
		finds: func(by any) bool { _, is := by.(Find[T]); return is },
		find: func(ctx context.Context, _ *Guard, s Subject, id int64) (Kept, error) {
			return s.endpoint.Finder().(Find[T])(ctx, s, id)
		},
	}
}

func (Record[T]) form() form {
	f := recordForm(aboutRecord, func(s Subject, record T) any { return Record[T]{s, record} })
	if placed, is := any(*new(T)).(Placed); is {
		f.missing = placed.Missing
	}
	return f
}

func (ProjectRecord[T]) form() form {
	return recordForm(aboutProject, func(s Subject, record T) any { return ProjectRecord[T]{s, record} })
}

func (GroupRecord[T]) form() form {
	return recordForm(aboutGroup, func(s Subject, record T) any { return GroupRecord[T]{s, record} })
}

func (User) form() form {
	return form{
		about: aboutUser,
		of:    func(s Subject, record any) any { return User{s, record.(person).User} },
		find: func(ctx context.Context, g *Guard, _ Subject, id int64) (Kept, error) {
			u, err := g.catalog.User(ctx, v1alpha1.Reference{ID: id})
			if errors.Is(err, catalog.ErrNotFound) {
				err = endpoint.NotFound("User")
			}
			return person{u}, err
		},
	}
}

// checkRecord is Check for the record of an endpoint, and the rule on it.
func checkRecord(e *endpoint.Endpoint, f form) error {
	switch rule, _ := e.Rule(); {
	case rule != "" && rule != Own:
		return fmt.Errorf("there is no rule %q", rule)
	case rule != "" && (f.find == nil || e.Ability() == ""):
		return fmt.Errorf("the rule %s is about a record, and beside an ability: %T", rule, e.Subject())
	case f.finds == nil && e.Finder() != nil, f.finds != nil && !f.finds(e.Finder()):
		return fmt.Errorf("no %T is found by %T", e.Subject(), e.Finder())
	default:
		return nil
	}
}

// may reports whether the caller has the ability that the endpoint needs, if it needs one.
func (s Subject) may() bool { return s.endpoint.Ability() == "" || s.Access.may(s.endpoint.Ability()) }

// record finds the record that a request is about, and decides about it. Callers without the ability do not learn what there is: a record
// in a project that they must not see is answered like one that does not exist.
func (g *Guard) record(ctx context.Context, s *Subject, f form) (Kept, error) {
	e := s.endpoint
	if _, enough := e.Rule(); f.about != aboutRecord && !enough && !s.may() {
		return nil, e.Denial()
	}
	id, err := endpoint.ID(e.Record(), s.record)
	if err != nil {
		return nil, err
	}
	record, err := f.find(ctx, g, *s, id)
	if err == nil && f.about == aboutRecord {
		err = g.place(ctx, s, record)
	}
	var answer *endpoint.Error
	switch {
	case errors.As(err, &answer) && f.missing != nil:
		return nil, f.missing()
	case errors.As(err, &answer) && !s.may():
		return nil, e.Denial()
	case err != nil:
		return nil, err
	case !s.mayWith(record):
		return nil, e.Denial()
	default:
		return record, nil
	}
}

// mayWith is may for a record that was found: the rule on it counts as well.
func (s Subject) mayWith(record Kept) bool {
	own := s.Caller.User != nil && s.Caller.User.UID == record.Owner()
	switch rule, enough := s.endpoint.Rule(); {
	case rule == "":
		return s.may()
	case enough:
		return s.may() || own
	default:
		return s.may() && own
	}
}

// place finds the project that a record is in. In none, an administrator may do with it what the owner of a project may.
func (g *Guard) place(ctx context.Context, s *Subject, record Kept) error {
	if placed, is := record.(Placed); is && placed.ProjectID() != 0 {
		return g.locate(ctx, s, aboutProject, strconv.FormatInt(placed.ProjectID(), 10))
	}
	if s.Caller.Admin {
		s.Access.Role = role.Owner
	}
	return nil
}
