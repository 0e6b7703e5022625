package feature_test

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/forgeplane/forgeplane/internal/feature"
)

func values(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "forgeplane-features"}, Data: data}
}

func TestDefinitions_matchInterfaceDocuments(t *testing.T) {
	NewWithT(t).Expect(feature.Definitions()).To(ConsistOf(
		feature.Definition{Name: "changelog_commits_limitation", On: true},
		feature.Definition{Name: "mr_approved_filter"},
		feature.Definition{Name: "restrict_merge_status_recheck"},
		feature.Definition{Name: "ci_job_token_scope"},
		feature.Definition{Name: "ssh_certificates_rest_endpoints"},
	))
}

func TestEnabled_prefersStoredValueThenCommandLine(t *testing.T) {
	const on, off = feature.ChangelogCommitsLimitation, feature.SSHCertificates
	for name, tt := range map[string]struct {
		given   map[string]bool
		stored  map[string]string
		on, off bool
	}{
		"nothing":                {on: true},
		"the command line":       {given: map[string]bool{on: false, off: true}, off: true},
		"stored":                 {stored: map[string]string{on: "false", off: "true"}, off: true},
		"both":                   {given: map[string]bool{on: false, off: true}, stored: map[string]string{on: "true", off: "false"}, on: true},
		"stored, and no value":   {given: map[string]bool{off: true}, stored: map[string]string{on: "no", off: ""}, on: true, off: true},
		"stored, something else": {stored: map[string]string{"other": "true"}, on: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			cache := fake.NewClientBuilder()
			if tt.stored != nil {
				cache.WithObjects(values(tt.stored))
			}
			flags := feature.New(cache.Build(), "platform", tt.given)
			g.Expect(flags.Enabled(t.Context(), on)).To(Equal(tt.on))
			g.Expect(flags.Enabled(t.Context(), off)).To(Equal(tt.off))
		})
	}
}

func TestEnabled_fallsBackToDefaults(t *testing.T) {
	var flags *feature.Flags
	for _, d := range feature.Definitions() {
		NewWithT(t).Expect(flags.Enabled(t.Context(), d.Name)).To(Equal(d.On))
	}
}

type broken struct{ client.Reader }

func (broken) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("the cache is gone")
}

func TestEnabled_failsIfCacheFails(t *testing.T) {
	_, err := feature.New(broken{}, "platform", nil).Enabled(t.Context(), feature.SSHCertificates)
	NewWithT(t).Expect(err).To(MatchError("reading whether the feature ssh_certificates_rest_endpoints is on: the cache is gone"))
}

func TestParse_explainsInvalidFlags(t *testing.T) {
	g := NewWithT(t)
	_, _, err := feature.Parse("dark_mode=true")
	g.Expect(err).To(MatchError(`the feature "dark_mode" does not exist: name one of changelog_commits_limitation, ci_job_token_scope, ` +
		`mr_approved_filter, restrict_merge_status_recheck, ssh_certificates_rest_endpoints`))
	for _, text := range []string{"mr_approved_filter", "mr_approved_filter=", "mr_approved_filter=on", "mr_approved_filter=TRUE"} {
		_, _, err := feature.Parse(text)
		g.Expect(err).To(MatchError(`"` + text + `" must be mr_approved_filter=true or mr_approved_filter=false`))
	}
	for text, want := range map[string]bool{"mr_approved_filter=true": true, "mr_approved_filter=false": false} {
		name, on, err := feature.Parse(text)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect([]any{name, on}).To(Equal([]any{"mr_approved_filter", want}))
	}
}

func TestProjectsLimit_isNumberInConfigMap(t *testing.T) {
	for stored, want := range map[string]int32{"": -1, "0": 0, "42": 42, "-1": -1, "many": -1, "3000000000": -1} {
		flags := feature.New(fake.NewClientBuilder().WithObjects(values(map[string]string{feature.DefaultProjectsLimit: stored})).Build(), "platform", nil)
		limit, set, err := flags.ProjectsLimit(t.Context())
		if err != nil || set != (want >= 0) || set && limit != want {
			t.Errorf("%q: got %d, %t, %v", stored, limit, set, err)
		}
	}
	if _, set, err := (*feature.Flags)(nil).ProjectsLimit(t.Context()); set || err != nil {
		t.Errorf("got %t, %v without flags", set, err)
	}
	if _, _, err := feature.New(broken{}, "platform", nil).ProjectsLimit(t.Context()); err == nil {
		t.Error("does not fail without a cache")
	}
}
