package change_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/audit/audittest"
	"github.com/forgeplane/forgeplane/internal/change"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/update"
	"github.com/forgeplane/forgeplane/internal/protection"
	"github.com/forgeplane/forgeplane/internal/role"
)

// site is a repository with the branches main and topic, and a write of a Developer to it.
type site struct {
	change.Write
	client *gittest.Client // in the repository
	main   string

	rules      []protection.Rule
	err        error // of Authorize
	authorized int
	events     []change.Event
}

var web = types.NamespacedName{Namespace: "acme", Name: "web"}

func newSite(t *testing.T, via protection.Via) *site {
	t.Helper()
	c := gittest.New(t, "sha1")
	s := &site{main: c.Commit(t, "a", "1")}
	c.Git(t, "branch", "topic")
	r := gittest.Bare(t, c)
	s.client = &gittest.Client{Dir: r.Dir()}
	s.Write = change.Write{
		Project: web, Repository: r, Via: via,
		Authorize: func(context.Context, []string) (protection.Actor, []protection.Rule, error) {
			s.authorized++
			return protection.Actor{UserID: 1, Role: role.Developer}, s.rules, s.err
		},
		Written: func(e change.Event) { s.events = append(s.events, e) },
	}
	return s
}

// next writes a commit that follows main.
func (s *site) next(t *testing.T, message string) update.Ref {
	t.Helper()
	return update.Ref{Name: "refs/heads/main", Old: s.main, New: s.client.Git(t, "commit-tree", "-p", s.main, "-m", message, "main^{tree}")}
}

// protected returns a protection of main that lets some roles push and merge.
func protected(push, merge role.Role) []protection.Rule {
	return []protection.Rule{{Name: "main", Source: "acme/main", Push: []protection.Grant{{Role: push}}, Merge: []protection.Grant{{Role: merge}}}}
}

// A job has no request, and brings the commit of a merge.
func TestApply_mergesPreparedCommit(t *testing.T) {
	g, s := NewWithT(t), newSite(t, protection.Merge)
	s.rules = protected(role.None, role.Developer)
	var made update.Ref
	g.Expect(s.Apply(t.Context(), func(context.Context) ([]update.Ref, error) {
		made = s.next(t, "Merge")
		return []update.Ref{made}, nil
	})).To(Succeed())
	g.Expect(s.client.Git(t, "rev-parse", "main")).To(Equal(made.New))
	g.Expect(s.events).To(Equal([]change.Event{{Project: web, Updates: []update.Ref{made}}}))
}

func TestApply_changesNothingIfRefused(t *testing.T) {
	broken := errors.New("broken")
	refused := new(*change.RefusedError)
	for about, tt := range map[string]struct {
		before   func(t *testing.T, s *site)
		prepare  func(t *testing.T, s *site) (update.Ref, error)
		want     any
		prepared bool
		decided  bool
	}{
		"closed repository": {before: func(t *testing.T, s *site) {
			open, err := s.Repository.Close(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(open)
		}, want: git.ErrClosed},
		"unauthorized writer": {before: func(_ *testing.T, s *site) { s.err = broken }, want: broken},
		"failed preparation": {prepare: func(*testing.T, *site) (update.Ref, error) {
			return update.Ref{}, broken
		}, want: broken, prepared: true},
		"writer who loses the permission meanwhile": {prepare: func(t *testing.T, s *site) (update.Ref, error) {
			s.err = broken
			return s.next(t, "Late"), nil
		}, want: broken, prepared: true, decided: true},
		"branch that is protected meanwhile": {prepare: func(t *testing.T, s *site) (update.Ref, error) {
			s.rules = protected(role.Maintainer, role.Maintainer)
			return s.next(t, "Late"), nil
		}, want: refused, prepared: true, decided: true},
		"branch that has moved": {prepare: func(t *testing.T, s *site) (update.Ref, error) {
			u := s.next(t, "Late")
			u.Old = u.New
			return u, nil
		}, want: refs.ErrMoved, prepared: true},
		"deletion of the default branch": {prepare: func(_ *testing.T, s *site) (update.Ref, error) {
			return update.Ref{Name: "refs/heads/main", Old: s.main}, nil
		}, want: change.ErrDefaultBranch, prepared: true, decided: true},
	} {
		t.Run(about, func(t *testing.T) {
			g, s := NewWithT(t), newSite(t, protection.API)
			if tt.before != nil {
				tt.before(t, s)
			}
			before, prepared := s.client.Git(t, "show-ref"), false
			err := s.Apply(t.Context(), func(context.Context) ([]update.Ref, error) {
				prepared = true
				if tt.prepare == nil {
					return []update.Ref{s.next(t, "Never")}, nil
				}
				u, err := tt.prepare(t, s)
				return []update.Ref{u}, err
			})
			if want, ok := tt.want.(error); ok {
				g.Expect(err).To(MatchError(want))
			} else {
				g.Expect(errors.As(err, tt.want)).To(BeTrue(), "%v", err)
			}
			g.Expect(prepared).To(Equal(tt.prepared))
			g.Expect(errors.As(err, new(*change.DecisionError))).To(Equal(tt.decided))
			g.Expect(s.client.Git(t, "show-ref")).To(Equal(before))
			g.Expect(s.events).To(BeEmpty())
		})
	}
}

// Reading the repository can take long.
func TestDecide_decidesAgainIfRepositoryWasRead(t *testing.T) {
	g, s := NewWithT(t), newSite(t, protection.API)
	g.Expect(s.Decide(t.Context(), nil, s.next(t, "Unprotected"))).To(Succeed())
	g.Expect(s.authorized).To(Equal(1))
	s.rules = protected(role.Developer, role.Developer)
	g.Expect(s.Decide(t.Context(), nil, s.next(t, "Protected"))).To(Succeed())
	g.Expect(s.authorized).To(Equal(3))

	authorize := s.Authorize
	s.Authorize = func(ctx context.Context, branches []string) (protection.Actor, []protection.Rule, error) {
		actor, rules, err := authorize(ctx, branches)
		s.rules = protected(role.Maintainer, role.Maintainer)
		return actor, rules, err
	}
	g.Expect(errors.As(s.Decide(t.Context(), nil, s.next(t, "Protected meanwhile")), new(*change.RefusedError))).To(BeTrue())
}

func TestApply_auditsEachUpdate(t *testing.T) {
	g, s := NewWithT(t), newSite(t, protection.API)
	lines := audittest.Open(t)
	handler := lines.Handler(audit.At{Door: audit.REST, Address: func(*http.Request) string { return "" }},
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_ = s.Apply(r.Context(), func(context.Context) ([]update.Ref, error) {
				return []update.Ref{s.next(t, "One of two"), {Name: "refs/heads/topic", Old: s.main}}, nil
			})
		}))
	for _, rules := range [][]protection.Rule{protected(role.Maintainer, role.Maintainer), nil} {
		s.rules = rules
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", http.NoBody))
	}
	all := lines.Events()
	g.Expect(all).To(HaveLen(2))
	g.Expect(all[0].Refs).To(HaveExactElements(
		And(HaveField("Name", "refs/heads/main"), HaveField("Result", audit.Refused), HaveField("Reason", ContainSubstring("is protected"))),
		And(HaveField("Name", "refs/heads/topic"), HaveField("Result", audit.Refused), HaveField("Reason", "another update of this write was refused"))))
	g.Expect(all[1].Refs).To(HaveEach(And(HaveField("Result", audit.Done), HaveField("Reason", ""))))
}
