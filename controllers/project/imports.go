package project

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/git/transfer"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// progressInterval is the interval at which the progress of an import is written.
const progressInterval = job.ProgressInterval

// suspend stops the import or fork of a project.
func (c *Controller) suspend(p *v1alpha1.Project) error {
	making, made := "import", "imported"
	if begins(p) {
		making, made = "fork", "forked"
	}
	if !c.stopped(p) {
		return frame.Progressing(0, v1alpha1.ReasonSuspended, "the %s of the repository is being stopped", making)
	}
	return frame.Settled(v1alpha1.ReasonSuspended, "the repository is not %s: spec.suspend is true", made)
}

// stopped ends the import or fork of a project, and reports whether it has ended.
func (c *Controller) stopped(p *v1alpha1.Project) bool {
	imported, forked := c.importer.forget(p.UID), c.forks.forget(p.UID)
	return imported && forked
}

// importRepository starts the import, or reports its state.
func (c *Controller) importRepository(ctx context.Context, p *v1alpha1.Project, repo *repository.Handle) error {
	if strings.HasPrefix(p.Spec.ImportURL, "file:") && !c.options.AllowFileImport {
		return frame.Stalled(v1alpha1.ReasonInvalid, "importURL: file URLs are for development only: use http or https")
	}
	correct := "set importSecretRef"
	o := transfer.ImportOptions{
		URL: p.Spec.ImportURL, AllowFile: c.options.AllowFileImport, DefaultBranch: p.Spec.DefaultBranch,
	}
	if ref := p.Spec.ImportSecretRef; ref != nil {
		offer := credential.Offer{Holder: p, Field: "importSecretRef", Name: ref.Name, Kind: v1alpha1.SecretOfImport, URL: p.Spec.ImportURL}
		login, err := offer.Login(ctx, c.options.Secrets)
		if err != nil {
			return err
		}
		correct = "correct Secret " + offer.Name
		o.Username, o.Password = login.Username, login.Password
		if o.Password == "" {
			return frame.Waiting(v1alpha1.ReasonInvalid, "importSecretRef: Secret %s has no key %s", offer.Name, credential.PasswordKey)
		}
	}
	declared := p.DeepCopy()
	s := c.importer.begin(p, func(ctx context.Context, progress func(transfer.Progress)) error {
		o.Progress = progress
		return c.options.Egress.Through(func(proxy string) error {
			o.Proxy = proxy
			err := repo.Import(audit.For(ctx, declared), o)
			if errors.Is(err, transfer.ErrCredentials) { // Git's own words are about a terminal
				err = fmt.Errorf("%w: %s", transfer.ErrCredentials, correct)
			}
			return err
		})
	})
	return s.wait("importing " + p.Spec.ImportURL)
}
