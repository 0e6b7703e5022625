package users

import (
	"context"
	"net/http"

	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
)

// Changed is whether a request changed the state of a user. Clients rely on the new state if it is true. It is null if the user was blocked
// or deactivated before.
type Changed = *bool

func (f *Family) block(ctx context.Context, s auth.User, _ *endpoint.None) (Changed, error) {
	if err := another(s, "blocked"); err != nil {
		return nil, err
	}
	return f.enter(ctx, s, v1alpha1.UserBlocked, func(u *v1alpha1.User) (Changed, error) {
		if refused(u) {
			return nil, nil
		}
		return ptr.To(true), nil
	})
}

func (f *Family) unblock(ctx context.Context, s auth.User, _ *endpoint.None) (Changed, error) {
	return f.enter(ctx, s, v1alpha1.UserActive, func(u *v1alpha1.User) (Changed, error) {
		if u.InState() == v1alpha1.UserDeactivated {
			return nil, endpoint.Forbidden("Deactivated users cannot be unblocked by the API")
		}
		return ptr.To(u.InState() == v1alpha1.UserBlocked), nil
	})
}

func (f *Family) deactivate(ctx context.Context, s auth.User, _ *endpoint.None) (Changed, error) {
	if err := another(s, "deactivated"); err != nil {
		return nil, err
	}
	return f.enter(ctx, s, v1alpha1.UserDeactivated, func(u *v1alpha1.User) (Changed, error) {
		switch {
		case refused(u):
			return nil, endpoint.Forbidden("A blocked user cannot be deactivated by the API")
		case u.InState() == v1alpha1.UserDeactivated:
			return nil, nil
		default:
			return ptr.To(true), nil
		}
	})
}

func (f *Family) activate(ctx context.Context, s auth.User, _ *endpoint.None) (Changed, error) {
	return f.enter(ctx, s, v1alpha1.UserActive, func(u *v1alpha1.User) (Changed, error) {
		if refused(u) {
			return nil, endpoint.Forbidden("A blocked user must be unblocked to be activated")
		}
		return ptr.To(true), nil
	})
}

func (f *Family) ban(ctx context.Context, s auth.User, _ *endpoint.None) (Changed, error) {
	if err := another(s, "banned"); err != nil {
		return nil, err
	}
	return f.enter(ctx, s, v1alpha1.UserBanned, only("ban", v1alpha1.UserActive))
}

func (f *Family) unban(ctx context.Context, s auth.User, _ *endpoint.None) (Changed, error) {
	return f.enter(ctx, s, v1alpha1.UserActive, only("unban", v1alpha1.UserBanned))
}

// another refuses requests of callers about themselves, because callers could lock themselves out.
func another(s auth.User, what string) error {
	if s.Caller.Is(s.User.RESTID()) {
		return endpoint.Forbidden("The API initiating user cannot be " + what + " by the API")
	}
	return nil
}

// refused reports whether a user is blocked or banned. Clients that know no bans treat both alike.
func refused(u *v1alpha1.User) bool {
	return u.InState() == v1alpha1.UserBlocked || u.InState() == v1alpha1.UserBanned
}

// only returns a decision that admits the users of one state.
func only(action string, from v1alpha1.UserState) func(*v1alpha1.User) (Changed, error) {
	return func(u *v1alpha1.User) (Changed, error) {
		if u.InState() != from {
			return nil, endpoint.Message(http.StatusForbidden, "You cannot %s %s users.", action, entity.UserState(u))
		}
		return ptr.To(true), nil
	}
}

// enter changes the state of a user if decide returns true for the current state.
func (f *Family) enter(ctx context.Context, s auth.User, state v1alpha1.UserState, decide func(*v1alpha1.User) (Changed, error)) (answer Changed, err error) {
	_, err = f.users.Update(ctx, s.Subject, s.User.RESTID(), func(u *v1alpha1.User) (err error) {
		if answer, err = decide(u); err == nil && ptr.Deref(answer, false) {
			u.Spec.State = state
		}
		return err
	})
	return answer, err
}
