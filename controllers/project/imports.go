package project

import (
	"context"
	"strings"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// progressInterval is the interval at which the progress of an import is written.
const progressInterval = job.ProgressInterval

// importRepository starts the import, or reports its state.
func (c *Controller) importRepository(ctx context.Context, p *v1alpha1.Project, repo *repository.Handle) error {
	if strings.HasPrefix(p.Spec.ImportURL, "file:") && !c.options.AllowFileImport {
		return frame.Stalled(v1alpha1.ReasonInvalid, "importURL: file URLs are for development only: use http or https")
	}
	o := git.ImportOptions{
		URL: p.Spec.ImportURL, AllowFile: c.options.AllowFileImport, DefaultBranch: p.Spec.DefaultBranch,
	}
	if ref := p.Spec.ImportSecretRef; ref != nil {
		var err error
		offer := credential.Offer{Holder: p, Field: "importSecretRef", Name: ref.Name, Kind: v1alpha1.SecretOfImport, URL: p.Spec.ImportURL}
		if o.Username, o.Password, err = offer.Login(ctx, c.options.Secrets); err != nil {
			return err
		}
		if o.Password == "" {
			return frame.Waiting(v1alpha1.ReasonInvalid, "importSecretRef: Secret %s has no key %s", offer.Name, credential.PasswordKey)
		}
	}
	declared := p.DeepCopy()
	s := c.importer.begin(p, func(ctx context.Context, progress func(git.Progress)) error {
		o.Progress = progress
		return c.options.Egress.Through(func(proxy string) error {
			o.Proxy = proxy
			return repo.Import(audit.For(ctx, declared), o)
		})
	})
	switch reached := git.LastingLimit(s.err); {
	case s.retry > 0 && reached != "":
		return frame.WaitingFor(s.retry, v1alpha1.ReasonImportFailed, "importing %s: %s (the next attempt is in a day)", p.Spec.ImportURL, reached)
	case s.retry > 0:
		return frame.WaitingFor(s.retry, v1alpha1.ReasonImportFailed, "importing %s: %w (Forgeplane tries again)", p.Spec.ImportURL, s.err)
	case s.phase == "":
		return frame.WaitingFor(progressInterval, v1alpha1.ReasonImporting, "importing %s", p.Spec.ImportURL)
	default:
		return frame.WaitingFor(progressInterval, v1alpha1.ReasonImporting, "importing %s: %s", p.Spec.ImportURL, s.phase)
	}
}
