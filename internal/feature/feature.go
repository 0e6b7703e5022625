// Package feature knows the features that an administrator turns on and off for the whole installation.
//
// The flag --feature says so for a process. A value in the ConfigMap forgeplane-features in the namespace of the platform goes before
// it: the REST API writes it, every replica follows it, and an administrator of the cluster can declare it.
package feature

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ConfigMap is the name of the ConfigMap that holds the values, in the namespace of the platform.
const ConfigMap = "forgeplane-features"

// The features.
const (
	// ChangelogCommitsLimitation limits a changelog to 15,000 commits.
	ChangelogCommitsLimitation = "changelog_commits_limitation"
	// MergeRequestApprovedFilter lets lists of merge requests be filtered by approved.
	MergeRequestApprovedFilter = "mr_approved_filter"
	// RestrictMergeStatusRecheck ignores with_merge_status_recheck for those who are not at least Developers.
	RestrictMergeStatusRecheck = "restrict_merge_status_recheck"
	// JobTokenRegistry lets job tokens use the REST API of the container registry in their own project.
	JobTokenRegistry = "ci_job_token_scope"
	// SSHCertificates serves the SSH certificates of groups.
	SSHCertificates = "ssh_certificates_rest_endpoints"
)

// Definition is a feature with its default.
type Definition struct {
	Name string
	On   bool
}

// Definitions are all features, by their names.
func Definitions() []Definition {
	return []Definition{
		{Name: ChangelogCommitsLimitation, On: true},
		{Name: JobTokenRegistry},
		{Name: MergeRequestApprovedFilter},
		{Name: RestrictMergeStatusRecheck},
		{Name: SSHCertificates},
	}
}

// Find returns the definition of a feature; false for an unknown name.
func Find(name string) (Definition, bool) {
	all := Definitions()
	at := slices.IndexFunc(all, func(d Definition) bool { return d.Name == name })
	if at < 0 {
		return Definition{}, false
	}
	return all[at], true
}

// Names are the names of all features, for people.
func Names() string {
	var names []string
	for _, d := range Definitions() {
		names = append(names, d.Name)
	}
	return strings.Join(names, ", ")
}

// Parse reads what turns a feature on or off on a command line, as in name=true.
func Parse(text string) (name string, on bool, err error) {
	name, value, _ := strings.Cut(text, "=")
	if _, known := Find(name); !known {
		return "", false, fmt.Errorf("the feature %q does not exist: name one of %s", name, Names())
	}
	on, ok := parse(value)
	if !ok {
		return "", false, fmt.Errorf("%q must be %s=true or %s=false", text, name, name)
	}
	return name, on, nil
}

func parse(value string) (on, ok bool) { return value == "true", value == "true" || value == "false" }

// Value is the text that stands for on or off in the ConfigMap.
func Value(on bool) string { return strconv.FormatBool(on) }

// Flags knows which features are on. A nil Flags knows only the definitions.
type Flags struct {
	cache     client.Reader
	namespace string
	chosen    map[string]bool
}

// +kubebuilder:rbac:groups="",namespace=forgeplane-system,resources=configmaps,resourceNames=forgeplane-features,verbs=get;list;watch;patch,roleName=forgeplane-apiserver

// New returns flags that read a cache. namespace is the namespace of the platform, and chosen has the settings of the command line.
func New(cache client.Reader, namespace string, chosen map[string]bool) *Flags {
	return &Flags{cache: cache, namespace: namespace, chosen: chosen}
}

// Enabled reports whether a feature is on. It reads memory alone.
func (f *Flags) Enabled(ctx context.Context, name string) (bool, error) {
	definition, _ := Find(name)
	if f == nil {
		return definition.On, nil
	}
	values, _, err := f.Stored(ctx)
	if err != nil {
		return false, fmt.Errorf("reading whether the feature %s is on: %w", name, err)
	}
	if on, ok := parse(values.Data[name]); ok {
		return on, nil
	}
	if on, ok := f.chosen[name]; ok {
		return on, nil
	}
	return definition.On, nil
}

// DefaultProjectsLimit is a setting in the ConfigMap beside the features: how many projects a new user can create.
const DefaultProjectsLimit = "default_projects_limit"

// ProjectsLimit returns DefaultProjectsLimit; set is false if the ConfigMap has none, or none that is a number.
func (f *Flags) ProjectsLimit(ctx context.Context) (limit int32, set bool, err error) {
	if f == nil {
		return 0, false, nil
	}
	values, _, err := f.Stored(ctx)
	if err != nil {
		return 0, false, fmt.Errorf("reading the limit of projects of new users: %w", err)
	}
	n, err := strconv.ParseInt(values.Data[DefaultProjectsLimit], 10, 32)
	if err != nil || n < 0 {
		return 0, false, nil //nolint:nilerr // somebody has written something else there, which sets no limit
	}
	return int32(n), true, nil
}

// Stored returns the ConfigMap from memory; found is false if it does not exist.
func (f *Flags) Stored(ctx context.Context) (values *corev1.ConfigMap, found bool, err error) {
	values = f.Values()
	err = f.cache.Get(ctx, client.ObjectKeyFromObject(values), values)
	return values, err == nil, client.IgnoreNotFound(err)
}

// Values returns the ConfigMap without its content, for creating it.
func (f *Flags) Values() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: ConfigMap}}
}
