package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/role"
)

// Own is the rule that the record must be the caller's own.
const Own endpoint.Rule = "own"

// Kept is a record with an id that a request can be about, other than a project or a group.
type Kept interface {
	// Parameter describes the parameter that names the record in one sentence, for the OpenAPI document. It is called on the zero value.
	Parameter() string
	// Owner returns the UID of the user who owns the record, such as its author; empty if nobody does.
	Owner() types.UID
}

// Placed is a Kept that belongs to a project that the path does not name.
type Placed interface {
	// ProjectID returns the id of the project; 0 if the record is not in one.
	ProjectID() int64
	// Missing returns the answer if there is no such record, which is also the answer to callers who must not see its project. It is called
	// on the zero value.
	Missing() *endpoint.Error
}

// Record is the form of endpoints about a record that the path names by id, as in /snippets/{id}. endpoint.Found sets the Find that finds
// it. Abilities apply to the project of the record if it is Placed, or to the instance.
type Record[T Kept] struct {
	Subject
	Record T
}

// ProjectRecord is a Record in the project that the path names first, as in /projects/{id}/snippets/{snippet_id}.
type ProjectRecord[T Kept] struct {
	Subject
	Record T
}

// GroupRecord is a Record in the group that the path names first.
type GroupRecord[T Kept] struct {
	Subject
	Record T
}

// User is the subject of endpoints that name a user by id in the path. Their abilities apply to the instance. Only endpoints that read find
// bots of projects and groups, and only if the caller can see the project or group.
type User struct {
	Subject
	User *v1alpha1.User
}

// Find finds a record by its id. If the record does not exist, the error is the answer to callers who may know that.
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

// person is a user as a record that they own.
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
		find: func(ctx context.Context, g *Guard, s Subject, id int64) (Kept, error) {
			u, err := g.catalog.User(ctx, v1alpha1.Reference{ID: id})
			if errors.Is(err, catalog.ErrNotFound) && s.endpoint.Method() == http.MethodGet {
				u, err = g.botWithID(ctx, s.Caller, id)
			}
			if errors.Is(err, catalog.ErrNotFound) {
				err = endpoint.NotFound("User")
			}
			return person{u}, err
		},
	}
}

// checkRecord checks the record of an endpoint and the rule on it, as a part of Check.
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
func (s Subject) may() bool {
	return s.endpoint.Ability() == "" || s.permits(s.Access, s.endpoint.Ability())
}

// record finds the record that a request is about, and decides about it. Callers without the ability do not learn which records exist: a
// record in a project that they must not see is answered like a record that does not exist.
func (g *Guard) record(ctx context.Context, s *Subject, f form) (Kept, error) {
	e := s.endpoint
	if _, enough := e.Rule(); f.about != aboutRecord && !enough && !s.may() {
		return nil, s.denial()
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
		return nil, s.denial()
	case err != nil:
		return nil, err
	case !s.mayWith(record):
		return nil, s.denial()
	default:
		return record, nil
	}
}

// mayWith is may with a record: it also applies the rule on the record.
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

// place finds the project of a record. If it is not in one, an administrator has the permissions of a project owner on it.
func (g *Guard) place(ctx context.Context, s *Subject, record Kept) error {
	if placed, is := record.(Placed); is && placed.ProjectID() != 0 {
		return g.locate(ctx, s, aboutProject, strconv.FormatInt(placed.ProjectID(), 10))
	}
	if s.Caller.Admin {
		s.Access.Role = role.Owner
	}
	return nil
}
