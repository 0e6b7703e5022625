package githttp

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/apiserver/ratelimit"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/transfer"
	"github.com/forgeplane/forgeplane/internal/protection"
)

// Caller is the sender of a request. The zero Caller is anonymous.
type Caller struct {
	// UserID is the REST id of the user, and UID its UID.
	UserID int64
	UID    types.UID
	// Key is the key of a signed-in caller in limits.
	Key fair.Key
	// Scopes are the scopes of the token.
	Scopes []string
	// The caller, in the representation of the Authenticator, is in Who.
	Who any
}

// Anonymous reports whether the caller has not signed in.
func (c Caller) Anonymous() bool { return c.UserID == 0 }

// Errors that an Authenticator and Projects return for expected conditions.
var (
	// ErrUnauthenticated is returned if the password is not a token, or the token has expired or was revoked.
	ErrUnauthenticated = errors.New("the credentials are not valid")
	// ErrBlocked is returned if the user is not allowed to use the server.
	ErrBlocked = errors.New("the user is blocked")
	// ErrNotFound is returned if the project does not exist, or the caller cannot see it.
	ErrNotFound = errors.New("the project does not exist")
	// ErrPending is returned if the repository of the project does not exist yet.
	ErrPending = errors.New("the repository is still being created")
)

// Authenticator authenticates callers by access tokens.
type Authenticator interface {
	// Authenticate returns the caller with the credentials of HTTP Basic authentication. The password is a token. The username is ignored.
	// The error is ErrUnauthenticated, ErrBlocked or a failure.
	Authenticate(ctx context.Context, username, password string) (Caller, error)
	// Again authenticates a caller again, with the same errors, because the token can have expired or been revoked.
	Again(ctx context.Context, c Caller) (Caller, error)
}

// Projects finds projects and the permissions of callers.
type Projects interface {
	// Find returns the current state of the project with a full path, as the caller sees it. The error is ErrNotFound or a failure.
	Find(ctx context.Context, fullPath string, caller Caller) (*Project, error)
}

// Project is the state of a project at one moment, as a caller sees it.
type Project struct {
	// Name is the name of the declared project.
	Name types.NamespacedName
	// Open sets the repository, and waits for the repository of a new project. It returns ErrNotFound, ErrPending or a failure.
	Open       func(ctx context.Context) error
	Repository *git.Repository
	// CanFetch says that the caller can read the code.
	CanFetch bool
	// Actor is the caller in the form to which rules apply.
	Actor protection.Actor
	// Rules returns the protections of the project that match any of these branches.
	Rules func(ctx context.Context, branches []string) ([]protection.Rule, error)
	// ReadOnly is the reason why the project accepts no pushes, or "".
	ReadOnly string
}

// ReadOnly is the reason for projects with spec.readOnly, and for projects whose repository is being moved.
const ReadOnly = "The repository is temporarily read-only. Please try again later."

// readOnly returns the reason why a project accepts no pushes, or "".
func (h *Handler) readOnly(p *Project) string {
	if p.ReadOnly == "" && p.Repository.Closed() {
		return ReadOnly
	}
	return p.ReadOnly
}

// scopes are the accepted scopes: a token needs one of them.
var scopes = map[transfer.Service][]string{
	transfer.UploadPack:  {"api", "read_repository", "write_repository"},
	transfer.ReceivePack: {"api", "write_repository"},
}

// authorize finds the caller and the project, and checks the permissions of the caller. For a project that the caller cannot see, the
// response is that for a project that does not exist.
func (h *Handler) authorize(r *http.Request, req request) (Caller, *Project, error) {
	caller, err := h.authenticate(r, req.service)
	if err != nil {
		return Caller{}, nil, err
	}
	ctx := r.Context()
	if !caller.Anonymous() { // anonymous clients retry at once when they are asked to sign in
		ctx = fair.With(ctx, caller.Key)
		if err := ratelimit.CountGit(ctx); err != nil {
			return Caller{}, nil, err
		}
	}
	push := req.service == transfer.ReceivePack
	if push && caller.Anonymous() {
		return Caller{}, nil, signIn
	}
	project, err := h.find(ctx, req.path, caller)
	switch {
	case errors.Is(err, ErrNotFound) && caller.Anonymous():
		return Caller{}, nil, signIn
	case errors.Is(err, ErrNotFound):
		return Caller{}, nil, notFound
	case err != nil:
		return Caller{}, nil, err
	case push:
		if may, err := project.Actor.MayWrite(ctx, ""); err != nil {
			return Caller{}, nil, err
		} else if !may {
			return Caller{}, nil, refusal{status: http.StatusForbidden, text: notAllowed}
		}
	case !project.CanFetch && caller.Anonymous():
		return Caller{}, nil, signIn
	case !project.CanFetch:
		return Caller{}, nil, refusal{status: http.StatusForbidden, text: "You are not allowed to download code from this project."}
	}
	return caller, project, open(ctx, project, caller)
}

// notAllowed is the message for callers without write access.
const notAllowed = "You are not allowed to push code to this project."

// open opens the repository of a project. It counts the request of an anonymous caller before it waits.
func open(ctx context.Context, project *Project, caller Caller) error {
	if caller.Anonymous() {
		if err := ratelimit.CountGit(ctx); err != nil {
			return err
		}
	}
	err := project.Open(ctx)
	switch {
	case errors.Is(err, ErrPending):
		return pending
	case errors.Is(err, ErrNotFound) && caller.Anonymous():
		return signIn
	case errors.Is(err, ErrNotFound):
		return notFound
	}
	return err
}

func (h *Handler) authenticate(r *http.Request, service transfer.Service) (Caller, error) {
	if r.Header.Get("Authorization") == "" {
		return Caller{}, nil
	}
	username, password, ok := r.BasicAuth()
	if !ok {
		return Caller{}, signIn
	}
	caller, err := h.Authenticator.Authenticate(r.Context(), username, password)
	switch {
	case errors.Is(err, ErrUnauthenticated), err == nil && caller.Anonymous():
		if err := ratelimit.CountFailedSignIn(r.Context()); err != nil {
			return Caller{}, err
		}
		return Caller{}, refusal{status: http.StatusUnauthorized, text: "The access token is not valid: it may be unknown, expired or revoked."}
	case errors.Is(err, ErrBlocked):
		return Caller{}, refusal{status: http.StatusForbidden, text: "Your account has been blocked."}
	case err != nil:
		return Caller{}, err
	case !caller.has(scopes[service]):
		return Caller{}, missingScope[service]
	}
	return caller, nil
}

// has reports whether the token has one of the scopes.
func (c Caller) has(one []string) bool {
	return slices.ContainsFunc(c.Scopes, func(s string) bool { return slices.Contains(one, s) })
}

func (h *Handler) find(ctx context.Context, path string, caller Caller) (*Project, error) {
	if path == "" {
		return nil, ErrNotFound
	}
	return h.Projects.Find(ctx, path, caller)
}

// notFound is the response for a project that does not exist or that the caller cannot see.
var notFound = refusal{status: http.StatusNotFound,
	text: "The project you were looking for could not be found or you don't have permission to view it."}

// pending is the response for a project whose repository does not exist yet.
var pending = refusal{status: http.StatusServiceUnavailable,
	text: "The repository of this project is still being created. Please try again later."}

// outdated reports whether a request must be served again because its refusal can be due to an outdated cache. Otherwise it returns the
// refusal. No write of another server affects the refusal of a push without credentials.
func (h *Handler) outdated(r *http.Request, req request, err error) (again bool, refused error) {
	var said refusal
	unsigned := r.Header.Get("Authorization") == "" && req.service == transfer.ReceivePack
	if h.Outdated == nil || unsigned || !errors.As(err, &said) {
		return false, err
	}
	switch said.status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		again, behind := h.Outdated(r.Context())
		return again, cmp.Or(behind, err)
	default:
		return false, err
	}
}
