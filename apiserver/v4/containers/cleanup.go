package containers

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/registry/cleanup"
	"github.com/forgeplane/forgeplane/internal/registry/record"
)

// +kubebuilder:rbac:groups=forgeplane.dev,resources=registrycleanups,verbs=get;create;patch;delete,roleName=forgeplane-apiserver

const (
	// kept is the time for which the objects of bulk deletions are kept after their end.
	kept = 24 * time.Hour
	// maxRegex is the maximum length of an expression.
	maxRegex = 1024
)

type removeTagsRequest struct {
	NameRegex       string `param:"name_regex" atLeastOne:"names" doc:"Deprecated in favour of name_regex_delete."`
	NameRegexDelete string `param:"name_regex_delete" atLeastOne:"names" doc:"Regular expression in RE2 syntax that matches the whole names of the tags to delete. The tag latest always stays."`
	NameRegexKeep   string `param:"name_regex_keep" doc:"Regular expression in RE2 syntax that matches the whole names of tags to keep."`
	KeepN           int64  `param:"keep_n" doc:"Number of matching tags to keep, those with the newest images. 0 or less keeps none."`
	OlderThan       string `param:"older_than" doc:"A span of time, as in 1h, 1d, 1month or \"2 weeks 3 days\". Tags whose images are not older stay."`
}

// spec returns the requested cleanup.
func (r *removeTagsRequest) spec() (s v1alpha1.RegistryCleanupSpec, err error) {
	var problems []string
	for _, e := range []struct{ name, value string }{
		{"name_regex", r.NameRegex}, {"name_regex_delete", r.NameRegexDelete}, {"name_regex_keep", r.NameRegexKeep},
	} {
		if len(e.value) > maxRegex {
			problems = append(problems, fmt.Sprintf("%s is too long (maximum is %d characters)", e.name, maxRegex))
		} else if _, err := cleanup.Names(e.value); err != nil {
			problems = append(problems, e.name+" is an invalid regexp")
		}
	}
	if r.OlderThan != "" {
		if _, err := cleanup.ParseSpan(r.OlderThan); err != nil {
			problems = append(problems, "older_than is invalid")
		}
	}
	remove := cmp.Or(r.NameRegexDelete, r.NameRegex)
	if len(problems) == 0 && remove == "" {
		problems = append(problems, "name_regex, name_regex_delete are missing, at least one parameter must be provided")
	}
	if len(problems) > 0 {
		return s, endpoint.Parameters(problems...)
	}
	return v1alpha1.RegistryCleanupSpec{
		NameRegexDelete: remove, NameRegexKeep: r.NameRegexKeep, KeepN: min(max(r.KeepN, 0), math.MaxInt32), OlderThan: r.OlderThan,
		TTLAfterFinished: &metav1.Duration{Duration: kept},
	}, nil
}

var tooSoon = endpoint.Message(http.StatusBadRequest,
	"This request has already been made. You can run this at most once an hour for a given container repository")

// removeTags creates a cleanup, which the controller carries out. The body of the response is the status, as in the reference product.
func (f *Family) removeTags(ctx context.Context, s auth.ProjectRecord[repository], r *removeTagsRequest) (int, error) {
	if err := writable(s); err != nil {
		return 0, err
	}
	spec, err := r.spec()
	if err != nil {
		return 0, err
	}
	switch {
	case s.Record.Status != "":
		return 0, endpoint.BadRequest(record.ErrDeleted.Error())
	case s.Record.Cleanup.Add(cleanup.Interval).After(f.Clock.Now()):
		return 0, tooSoon // without the object that the check below needs
	}
	p := s.Scope.Project
	spec.ProjectRef, spec.Repository = catalog.ReferNamed(p), cmp.Or(s.Record.Name, cleanup.Root)
	spec.Suspend = true // hold resumes it
	m := &v1alpha1.RegistryCleanup{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: v1alpha1.NaturalName(p.Name, string(p.UID), rand.Text())}, Spec: spec,
	}
	// restWrites protects declared settings. A deletion of tags is not one.
	if err := f.cleanups.EnsureUnasked(ctx, m, f.hold(m, s.Record.ID)); err != nil {
		return 0, err
	}
	return 202, nil
}

// hold reserves a repository for a new cleanup and resumes the cleanup. If another cleanup has reserved the repository, hold discards the
// new one. A discarded cleanup stays suspended if it cannot be removed.
func (f *Family) hold(m *v1alpha1.RegistryCleanup, id int64) store.Then {
	return func(ctx context.Context, w store.Unasked) error {
		_, began, err := f.Images.Records.BeginCleanup(ctx, id, cleanup.RunID(m.UID, 1), f.Clock.Now(), cleanup.Interval)
		switch {
		case errors.Is(err, record.ErrDeleted), errors.Is(err, record.ErrNotFound):
			err = endpoint.BadRequest(record.ErrDeleted.Error())
		case err == nil && !began:
			err = tooSoon
		case err == nil:
			if err = w.Update(ctx, m, func() error { m.Spec.Suspend = false; return nil }); err != nil {
				err = errors.Join(err, f.Images.Records.CancelCleanup(ctx, id, cleanup.RunID(m.UID, 1)))
			}
		}
		if err == nil {
			return nil
		}
		return errors.Join(err, w.Discard(ctx, m))
	}
}
