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

const (
	// Own is the rule that the record must be the caller's own.
	Own endpoint.Rule = "own"
	// Private is Own for records that only their owners know of: another user's record is answered like one that does not exist. The
	// record must be a Missable.
	Private endpoint.Rule = "private"
)

// Kept is a record with an id that a request can be about, other than a project or a group.
type Kept interface {
	// Parameter describes the parameter that names the record in one sentence, for the OpenAPI document. It is called on the zero value.
	Parameter() string
	// Owner returns the UID of the user who owns the record, such as its author; empty without an owner.
	Owner() types.UID
}

// Missable is a Kept that some callers must not know of.
type Missable interface {
	// Missing returns the answer if there is no such record, which is also the answer to those callers. It is called on the zero value.
	Missing() *endpoint.Error
}

// Placed is a Kept that belongs to a project that the path does not name. Callers who must not see the project must not know of the record.
type Placed interface {
	Missable
	// ProjectID returns the id of the project; 0 if the record is not in one.
	ProjectID() int64
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

// Find finds a record by the id in the path. It can be an internal id (iid) in the project or group of the subject. If the record does not
// exist, or the caller must not see it, the error is the answer to callers who may know that.
type Find[T Kept] = func(ctx context.Context, s Subject, id int64) (T, error)

// parametersOf returns the parameters that name a record: those of the records around it first.
func parametersOf[T Kept]() []endpoint.Parameter {
	zero := *new(T)
	if n, is := any(zero).(nested); is {
		return n.parameters()
	}
	return []endpoint.Parameter{{Doc: zero.Parameter(), Integer: true}}
}

// Parameters implements endpoint.Located.
func (Record[T]) Parameters() []endpoint.Parameter {
	return parametersOf[T]()
}

// Parameters implements endpoint.Located.
func (ProjectRecord[T]) Parameters() []endpoint.Parameter {
	return append(Project{}.Parameters(), parametersOf[T]()...)
}

// Parameters implements endpoint.Located.
func (GroupRecord[T]) Parameters() []endpoint.Parameter {
	return append(Group{}.Parameters(), parametersOf[T]()...)
}

// Parameters implements endpoint.Located.
func (User) Parameters() []endpoint.Parameter {
	return parametersOf[person]()
}

// person is a user as a record that they own.
type person struct{ *v1alpha1.User }

func (person) Parameter() string  { return "Id of the user." }
func (p person) Owner() types.UID { return p.UID }

func recordForm[T Kept](about subject, of func(s Subject, record T) any) form {
	f := form{
		about: about,
		of:    func(s Subject, record any) any { return of(s, record.(T)) },
		finds: func(by any) bool { return finderOf[T](by) != nil },
		find: func(ctx context.Context, q *search) (Kept, error) {
			return finderOf[T](q.subject.endpoint.Finder())(ctx, q)
		},
	}
	if m, is := innermost(*new(T)).(Missable); is {
		f.concealed = m.Missing
	}
	return f
}

func (Record[T]) form() form {
	f := recordForm(aboutRecord, func(s Subject, record T) any { return Record[T]{s, record} })
	if placed, is := outermost(*new(T)).(Placed); is {
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
		find: func(ctx context.Context, q *search) (Kept, error) {
			u, err := q.guard.catalog.User(ctx, v1alpha1.Reference{ID: q.ids[0]})
			if errors.Is(err, catalog.ErrNotFound) && q.subject.endpoint.Method() == http.MethodGet {
				u, err = q.guard.botWithID(ctx, q.subject.Caller, q.ids[0])
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
	switch rule, enough := e.Rule(); {
	case rule != "" && rule != Own && rule != Private:
		return fmt.Errorf("there is no rule %q", rule)
	case rule == Private && (enough || f.concealed == nil):
		return fmt.Errorf("the rule %s needs And, and a record that is Missable: %T", rule, e.Subject())
	case rule != "" && (f.find == nil || e.Ability() == ""):
		return fmt.Errorf("the rule %s is about a record, and beside an ability: %T", rule, e.Subject())
	case f.finds == nil && e.Finder() != nil, f.finds != nil && !f.finds(e.Finder()):
		return fmt.Errorf("no %T is found by %T", e.Subject(), e.Finder())
	default:
		return nil
	}
}

// may reports whether the caller has the ability that the endpoint needs, if it needs one, and has signed in if the endpoint needs that.
func (s Subject) may() bool {
	return !s.challenged() && (s.endpoint.Ability() == "" || s.permits(s.Access, s.endpoint.Ability()))
}

// challenged reports whether the caller must sign in once the subject turns out to be visible.
func (s Subject) challenged() bool {
	return s.Caller.Anonymous() && s.endpoint.ForAnonymous() == endpoint.Challenged
}

// record finds the record that a request is about, and decides about it. A record in a project that the caller must not see is answered like
// a record that does not exist. Callers without the ability do not learn which records exist, unless the endpoint says that those who see the
// record can know.
func (g *Guard) record(ctx context.Context, s *Subject, f form) (Kept, error) {
	e := s.endpoint
	rule, enough := e.Rule()
	visible := e.ForAnonymous() == endpoint.Hidden || e.ForAnonymous() == endpoint.Challenged
	if f.about != aboutRecord && !enough && !visible && !s.may() {
		return nil, s.denial()
	}
	ids, err := s.ids(f.about)
	if err != nil {
		return nil, err
	}
	q := &search{guard: g, subject: s, form: f, ids: ids}
	record, err := f.find(ctx, q)
	var answer *endpoint.Error
	switch known := errors.As(err, &answer); {
	case q.missed:
		return nil, f.missing()
	case known && !visible && !s.may():
		return nil, s.denial()
	case rule == Private && s.conceals(record, answer, err):
		return nil, f.concealed()
	case err != nil:
		return nil, err
	case !s.mayWith(record):
		return nil, s.denial()
	default:
		return record, nil
	}
}

// ids returns the ids in the path that name a record and the records around it, the outermost first.
func (s Subject) ids(about subject) ([]int64, error) {
	names, sent := s.endpoint.Located(), s.named
	if about == aboutProject || about == aboutGroup {
		names, sent = names[1:], sent[1:]
	}
	ids := make([]int64, len(names))
	for i, name := range names {
		var err error
		if ids[i], err = endpoint.ID(name, sent[i]); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// owns reports whether a record is the caller's own.
func (s Subject) owns(record Kept) bool {
	return s.Caller.User != nil && s.Caller.User.UID == record.Owner()
}

// conceals reports whether the rule Private conceals a record: it is missing, or another user owns it. answer is err as an answer.
func (s Subject) conceals(record Kept, answer *endpoint.Error, err error) bool {
	if err != nil {
		return answer != nil && answer.Status == http.StatusNotFound
	}
	return s.may() && !s.owns(record)
}

// mayWith is may with a record: it also applies the rule on the record.
func (s Subject) mayWith(record Kept) bool {
	switch rule, enough := s.endpoint.Rule(); {
	case rule == "":
		return s.may()
	case enough:
		return s.may() || s.owns(record)
	default:
		return s.may() && s.owns(record)
	}
}

// place finds the project of a record. If it is not in one, an administrator has the permissions of a project owner on it, but not with a job
// token.
func (g *Guard) place(ctx context.Context, s *Subject, record Kept) error {
	if placed, is := record.(Placed); is && placed.ProjectID() != 0 {
		return g.locate(ctx, s, aboutProject, strconv.FormatInt(placed.ProjectID(), 10))
	}
	if s.Caller.Admin && s.Caller.Job == nil {
		s.Access.Role = role.Owner
	}
	return nil
}
