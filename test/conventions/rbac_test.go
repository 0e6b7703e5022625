package conventions_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// role is a ClusterRole or Role as far as this package looks at one.
type role struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name      string            `json:"name"`
		Namespace string            `json:"namespace"`
		Labels    map[string]string `json:"labels"`
	} `json:"metadata"`
	Rules []rbacv1.PolicyRule `json:"rules"`
}

func roles(t *testing.T, file string) []role {
	t.Helper()
	g := NewWithT(t)
	text, err := os.ReadFile(filepath.Join(config, "rbac", file))
	g.Expect(err).NotTo(HaveOccurred())
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	var all []role
	for {
		var r role
		err := decoder.Decode(&r)
		if errors.Is(err, io.EOF) {
			return all
		}
		g.Expect(err).NotTo(HaveOccurred(), file)
		all = append(all, r)
	}
}

// permissions writes rules as sorted lines of namespace, group, resource and verb.
func permissions(namespace string, rules ...rbacv1.PolicyRule) []string {
	var all []string
	for _, r := range rules {
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				for _, verb := range r.Verbs {
					all = append(all, strings.Join([]string{"in " + namespace, group, resource, verb}, " "))
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func TestATenantsRolesHoldTheNamespacedKindsAndNoStatus(t *testing.T) {
	g := NewWithT(t)
	var namespaced []string
	for _, crd := range kinds(t) {
		if crd.Spec.Scope == apiextensionsv1.NamespaceScoped {
			namespaced = append(namespaced, crd.Spec.Names.Plural)
		}
	}
	g.Expect(namespaced).NotTo(BeEmpty())
	want := map[string][]string{
		"rbac.authorization.k8s.io/aggregate-to-view": {"get", "list", "watch"},
		"rbac.authorization.k8s.io/aggregate-to-edit": {"create", "update", "patch", "delete", "deletecollection"},
	}
	for _, r := range roles(t, "tenant_roles.yaml") {
		g.Expect(r.Kind).To(Equal("ClusterRole"))
		for label, verbs := range want {
			if r.Metadata.Labels[label] != "true" {
				continue
			}
			delete(want, label)
			// Whatever else were in it, a status or a cluster-scoped kind above all, would show here.
			g.Expect(permissions("", r.Rules...)).To(Equal(permissions("", rbacv1.PolicyRule{
				APIGroups: []string{"forgeplane.dev"}, Resources: namespaced, Verbs: verbs,
			})), r.Metadata.Name)
		}
	}
	g.Expect(want).To(BeEmpty(), "no role has this label")
}

// markers finds what the code says that it needs.
func markers(t *testing.T) []string {
	t.Helper()
	g := NewWithT(t)
	var all []string
	for _, directory := range []string{"controllers", "internal", "cmd", "apiserver"} {
		err := filepath.WalkDir(filepath.Join("../..", directory), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for line := range strings.Lines(string(text)) {
				if marker, ok := strings.CutPrefix(strings.TrimSpace(line), "// +kubebuilder:rbac:"); ok {
					all = append(all, marked(marker)...)
				}
			}
			return err
		})
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(all).NotTo(BeEmpty())
	slices.Sort(all)
	return slices.Compact(all)
}

func marked(marker string) []string {
	var namespace string
	var r rbacv1.PolicyRule
	for part := range strings.SplitSeq(marker, ",") {
		key, value, _ := strings.Cut(part, "=")
		values := strings.Split(strings.Trim(value, `"`), ";")
		switch key {
		case "groups":
			r.APIGroups = values
		case "resources":
			r.Resources = values
		case "verbs":
			r.Verbs = values
		case "namespace":
			namespace = values[0]
		}
	}
	return permissions(namespace, r)
}

func TestTheManagersRoleIsWhatTheCodeAsksFor(t *testing.T) {
	g := NewWithT(t)
	var granted []string
	for _, r := range roles(t, "role.yaml") {
		granted = append(granted, permissions(r.Metadata.Namespace, r.Rules...)...)
	}
	slices.Sort(granted)
	g.Expect(granted).NotTo(ContainElement(ContainSubstring("*")), "wildcards grant what nobody has thought of")
	g.Expect(granted).To(Equal(markers(t)))
	for _, p := range granted {
		if strings.HasPrefix(p, "in  ") && strings.Contains(p, " secrets ") {
			g.Expect(p).To(MatchRegexp(" (get|list|watch|create|patch)$"), "Secrets of tenants are neither replaced nor deleted")
		}
	}
}
