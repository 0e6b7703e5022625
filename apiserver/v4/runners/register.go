package runners

import (
	"context"
	"errors"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/runner"
)

type registerRequest struct {
	Token          string                    `param:"token" required:"" example:"glrtr-0f7c2b" doc:"Registration token."`
	MaintainerNote endpoint.Optional[string] `param:"maintainer_note" doc:"Deprecated: the maintenance_note."`
	settings
}

// register adds a runner that presents a registration token.
func (f *Family) register(ctx context.Context, s auth.Registration, r *registerRequest) (Registration, error) {
	in := s.Registration.In
	var places []database.Subject
	if in.Kind != "" {
		// The rows of a deleted project stay for a day.
		switch found, err := f.scope(ctx, in); {
		case errors.Is(err, catalog.ErrNotFound), err == nil && found.Target().GetUID() != in.UID:
			return Registration{}, endpoint.Forbidden("").Describe("The project or group of the registration token does not exist.")
		case err != nil:
			return Registration{}, err
		}
		places = append(places, in)
	}
	if !r.MaintenanceNote.Set {
		r.MaintenanceNote = r.MaintainerNote
	}
	return f.add(ctx, runner.Runner{Type: s.Registration.Type()}, r.settings, places...)
}

// RegistrationToken is a new registration token.
type RegistrationToken struct {
	Token   string        `json:"token"`
	Expires endpoint.Time `json:"token_expires_at" doc:"Always null."`
}

func (f *Family) resetOfInstance(ctx context.Context, _ auth.Instance, _ *endpoint.None) (RegistrationToken, error) {
	return f.resetRegistration(ctx, database.Subject{})
}

func (f *Family) resetOfProject(ctx context.Context, s auth.Project, _ *endpoint.None) (RegistrationToken, error) {
	return f.resetRegistration(ctx, item.Place(s.Scope))
}

func (f *Family) resetOfGroup(ctx context.Context, s auth.Group, _ *endpoint.None) (RegistrationToken, error) {
	return f.resetRegistration(ctx, item.Place(s.Scope))
}

// resetRegistration replaces the registration token of a project, a group or the installation.
func (f *Family) resetRegistration(ctx context.Context, in database.Subject) (RegistrationToken, error) {
	token := runner.NewRegistrationToken()
	if err := f.Activity.Runners.ResetRegistration(ctx, in, token); err != nil {
		return RegistrationToken{}, err
	}
	audit.From(ctx).Did("rotate", audit.Runner, "registration", in.ID)
	return RegistrationToken{Token: token}, nil
}
