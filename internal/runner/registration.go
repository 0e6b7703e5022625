package runner

import (
	"context"
	"errors"
	"fmt"

	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/sweep"
)

// RegistrationPrefix begins registration tokens.
const RegistrationPrefix = "glrtr-"

// NewRegistrationToken returns a new registration token.
func NewRegistrationToken() string { return credential.NewToken(RegistrationPrefix) }

// ErrNoRegistration says that a registration token is not valid.
var ErrNoRegistration = errors.New("the registration token is not valid")

// Registration lets runners that present its token register themselves.
type Registration struct {
	bun.BaseModel `bun:"table:runner_registrations"`

	ID int64 `bun:"id,pk,autoincrement"`
	// In is the project or the group of the runners; zero for the installation.
	In database.Subject `bun:"embed:subject_"`
	// Digest is the digest of the registration token.
	Digest string `bun:"digest"`
}

// Type returns the type of the runners that are registered.
func (r Registration) Type() Type {
	switch r.In.Kind {
	case database.KindProject:
		return OfProject
	case database.KindGroup:
		return OfGroup
	default:
		return OfInstance
	}
}

// Registrations are the projects and groups of registration tokens, for a sweep.Sweeper.
func (s *Store) Registrations() sweep.Inherited { return sweep.Table(s.db, (*Registration)(nil)) }

// ResetRegistration replaces the registration token of a project or a group, or of the installation if in is zero. The former one is invalid at once.
func (s *Store) ResetRegistration(ctx context.Context, in database.Subject, token string) error {
	name := in.String()
	if in == (database.Subject{}) {
		name = "the installation"
	}
	return s.db.Write(ctx, fmt.Sprintf("resetting the registration token of %s", name), func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewInsert().Model(&Registration{In: in, Digest: credential.Digest(token)}).
			On("CONFLICT (subject_uid) DO UPDATE").Set("digest = EXCLUDED.digest").Exec(ctx)
		return err
	})
}

// ByRegistrationToken returns the registration with a token. If the token is not valid, the error is ErrNoRegistration.
func (s *Store) ByRegistrationToken(ctx context.Context, token string) (Registration, error) {
	var some []Registration
	err := s.db.Read(ctx, "finding a registration token", func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model(&some).Where("digest = ?", credential.Digest(token)).Scan(ctx)
	})
	if err == nil && len(some) == 0 {
		err = ErrNoRegistration
	}
	if err != nil {
		return Registration{}, err
	}
	return some[0], nil
}
