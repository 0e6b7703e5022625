package remotemirrors

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

// Mirror is a mirror in the REST API.
type Mirror struct {
	ID                     int64         `json:"id"`
	Enabled                bool          `json:"enabled"`
	URL                    string        `json:"url" doc:"With asterisks in place of credentials."`
	LastError              *string       `json:"last_error"`
	LastSuccessfulUpdateAt endpoint.Time `json:"last_successful_update_at"`
	LastUpdateAt           endpoint.Time `json:"last_update_at"`
	LastUpdateStartedAt    endpoint.Time `json:"last_update_started_at"`
	OnlyProtectedBranches  bool          `json:"only_protected_branches"`
	KeepDivergentRefs      bool          `json:"keep_divergent_refs"`
	MirrorBranchRegex      string        `json:"mirror_branch_regex"`
	UpdateStatus           string        `json:"update_status" doc:"none, started, finished, failed or to_retry."`
	AuthMethod             string        `json:"auth_method"`
	HostKeys               []string      `json:"host_keys" doc:"Always empty: host keys are not shown."`
}

// statuses maps the states of a mirror to the names of the administration interface document.
var statuses = map[v1alpha1.MirrorUpdate]string{
	"": "none", v1alpha1.MirrorNone: "none", v1alpha1.MirrorStarted: "started", v1alpha1.MirrorFinished: "finished",
	v1alpha1.MirrorFailed: "failed", v1alpha1.MirrorToRetry: "to_retry",
}

// show returns a mirror of a project. A mirror that cannot be pushed is shown as not enabled, whatever its declaration says.
func show(p *v1alpha1.Project, m *v1alpha1.RemoteMirror) Mirror {
	s := &m.Status
	shown := Mirror{
		ID: m.RESTID(), Enabled: m.Spec.IsEnabled() && pushable(p), URL: mask(m),
		LastSuccessfulUpdateAt: moment(s.LastSuccessfulUpdateAt), LastUpdateAt: moment(s.LastUpdateAt), LastUpdateStartedAt: moment(s.LastUpdateStartedAt),
		OnlyProtectedBranches: m.Spec.OnlyProtectedBranches, KeepDivergentRefs: m.Spec.KeepDivergentRefs, MirrorBranchRegex: m.Spec.BranchRegex,
		UpdateStatus: statuses[s.UpdateStatus], AuthMethod: "password", HostKeys: []string{},
	}
	if s.LastError != "" {
		shown.LastError = &s.LastError
	}
	return shown
}

// pushable reports whether a project has a repository or gets one without intervention. It is false if the repository waits for a user, for
// example after a failed import or without storage.
func pushable(p *v1alpha1.Project) bool {
	ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
	return p.Status.RefsChecksum != "" || ready == nil || ready.Status != metav1.ConditionFalse ||
		ready.Reason == v1alpha1.ReasonImporting || ready.Reason == v1alpha1.ReasonFailed
}

func moment(t *metav1.Time) endpoint.Time {
	if t == nil {
		return endpoint.Time{}
	}
	return endpoint.Time(t.Time)
}

// mask returns the URL with asterisks in place of credentials, which only the Secret contains.
func mask(m *v1alpha1.RemoteMirror) string {
	if m.Spec.SecretRef == nil && m.Status.SecretRef.Name == "" {
		return m.Spec.URL
	}
	credentials := "*****:*****@"
	switch m.Annotations[v1alpha1.AnnotationCredentials] {
	case v1alpha1.CredentialsUsername:
		credentials = "*****@"
	case v1alpha1.CredentialsGit:
		credentials = "git@"
	case v1alpha1.CredentialsNone:
		credentials = ""
	}
	return strings.Replace(m.Spec.URL, "://", "://"+credentials, 1)
}
