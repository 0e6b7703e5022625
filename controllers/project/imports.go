package project

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/git"
)

// progressInterval is how often the progress of an import is written down.
const progressInterval = 2 * time.Second

// importRepository starts the import, or says how far it is.
func (c *Controller) importRepository(ctx context.Context, p *v1alpha1.Project, repo *git.Repository) error {
	if strings.HasPrefix(p.Spec.ImportURL, "file:") && !c.options.AllowFileImport {
		return frame.Stalled(v1alpha1.ReasonInvalid, "importURL: file URLs are for development only: use http or https")
	}
	o := git.ImportOptions{
		URL: p.Spec.ImportURL, AllowFile: c.options.AllowFileImport, DefaultBranch: p.Spec.DefaultBranch,
	}
	if ref := p.Spec.ImportSecretRef; ref != nil {
		var err error
		if o.Username, o.Password, err = c.credentials(ctx, p.Namespace, ref.Name); err != nil {
			return err
		}
	}
	s := c.importer.begin(p, func(ctx context.Context, progress func(git.Progress)) error {
		o.Progress = progress
		return c.options.Egress.Through(func(proxy string) error {
			o.Proxy = proxy
			return repo.Import(ctx, o)
		})
	})
	switch reached := git.LimitReached(s.err); {
	case s.retry > 0 && reached != "":
		return frame.WaitingFor(s.retry, v1alpha1.ReasonImportFailed, "importing %s: %s (the next attempt follows in a day)", p.Spec.ImportURL, reached)
	case s.retry > 0:
		return frame.WaitingFor(s.retry, v1alpha1.ReasonImportFailed, "importing %s: %w (the next attempt follows)", p.Spec.ImportURL, s.err)
	case s.phase == "":
		return frame.WaitingFor(progressInterval, v1alpha1.ReasonImporting, "importing %s", p.Spec.ImportURL)
	default:
		return frame.WaitingFor(progressInterval, v1alpha1.ReasonImporting, "importing %s: %s", p.Spec.ImportURL, s.phase)
	}
}

// credentials reads a Secret of the project's own namespace.
func (c *Controller) credentials(ctx context.Context, namespace, name string) (username, password string, err error) {
	var secret corev1.Secret
	err = c.options.Secrets.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &secret)
	if apierrors.IsNotFound(err) {
		return "", "", frame.WaitingFor(firstRetry, v1alpha1.ReasonReferenceNotFound, "importSecretRef: there is no Secret %s", name)
	}
	if err != nil {
		return "", "", fmt.Errorf("reading Secret %s: %w", name, err)
	}
	if len(secret.Data["password"]) == 0 {
		return "", "", frame.WaitingFor(firstRetry, v1alpha1.ReasonInvalid, "importSecretRef: Secret %s has no key password", name)
	}
	return string(secret.Data["username"]), string(secret.Data["password"]), nil
}
