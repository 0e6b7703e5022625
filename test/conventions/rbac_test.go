package conventions_test

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// role is the part of a ClusterRole or Role that this package needs.
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

// permissions returns rules as sorted lines of namespace, group, resource, name and verb.
func permissions(namespace string, rules ...rbacv1.PolicyRule) []string {
	var all []string
	for _, r := range rules {
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				for _, verb := range r.Verbs {
					for _, name := range append(r.ResourceNames, "any")[:max(len(r.ResourceNames), 1)] {
						all = append(all, strings.Join([]string{"in " + namespace, group, resource, name, verb}, " "))
					}
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func TestTenantRoles_coverNamespacedKindsWithoutStatus(t *testing.T) {
	g := NewWithT(t)
	var namespaced []string
	for _, crd := range kinds(t) {
		if forTenants(crd) {
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
			// Any other rule, such as a rule for a status or a cluster-scoped kind, would be a difference here.
			g.Expect(permissions("", r.Rules...)).To(Equal(permissions("", rbacv1.PolicyRule{
				APIGroups: []string{"forgeplane.dev"}, Resources: namespaced, Verbs: verbs,
			})), r.Metadata.Name)
		}
	}
	g.Expect(want).To(BeEmpty(), "no role has this label")
}

// accounts are the names of Forgeplane's own roles, one for each part.
var accounts = []string{"forgeplane-apiserver", "forgeplane-manager"}

// markers returns the permissions that the code requests, by the name of the role.
func markers(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for role, needs := range needed(t) {
		all[role] = slices.Sorted(maps.Keys(needs))
	}
	return all
}

// needed returns the packages that need each permission, by the name of the role.
func needed(t *testing.T) map[string]map[string][]string {
	t.Helper()
	g := NewWithT(t)
	all := map[string]map[string][]string{}
	for directory, usual := range map[string]string{"controllers": "forgeplane-manager", "internal": "", "cmd": "", "apiserver": ""} {
		for _, path := range goFiles(t, directory) {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			text, err := os.ReadFile(path)
			g.Expect(err).NotTo(HaveOccurred())
			for line := range strings.Lines(string(text)) {
				marker, ok := strings.CutPrefix(strings.TrimSpace(line), "// +kubebuilder:rbac:")
				if !ok {
					continue
				}
				role, permissions := marked(marker)
				role = cmp.Or(role, usual)
				g.Expect(role).To(BeElementOf(accounts), "%s: say by roleName whose it is: %s", path, marker)
				g.Expect(directory == "apiserver" && role != "forgeplane-apiserver").To(BeFalse(), "%s: the servers have another role: %s", path, marker)
				if all[role] == nil {
					all[role] = map[string][]string{}
				}
				for _, p := range permissions {
					all[role][p] = append(all[role][p], strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../../"))
				}
			}
		}
	}
	return all
}

func marked(marker string) (role string, all []string) {
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
		case "resourceNames":
			r.ResourceNames = values
		case "verbs":
			r.Verbs = values
		case "namespace":
			namespace = values[0]
		case "roleName":
			role = values[0]
		}
	}
	return role, permissions(namespace, r)
}

// granted returns the permissions of Forgeplane's own roles, by the name of the role.
func granted(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, r := range roles(t, "role.yaml") {
		all[r.Metadata.Name] = append(all[r.Metadata.Name], permissions(r.Metadata.Namespace, r.Rules...)...)
	}
	for role := range all {
		slices.Sort(all[role])
	}
	return all
}

// recording matches the permissions to record ids.
var recording = regexp.MustCompile(
	`^in forgeplane-system rbac\.authorization\.k8s\.io (rolebindings any (create|delete|list|update|watch)|roles forgeplane-declared-ids bind)$`)

func TestRoles_matchTheMarkersInTheCode(t *testing.T) {
	g := NewWithT(t)
	allowed := granted(t)
	g.Expect(allowed).To(Equal(markers(t)))
	g.Expect(allowed).To(HaveLen(len(accounts)))
	for role, all := range allowed {
		g.Expect(all).NotTo(ContainElement(ContainSubstring("*")), "%s: wildcards grant what nobody has thought of", role)
		for _, p := range all {
			if strings.HasPrefix(p, "in  ") && strings.Contains(p, " secrets ") {
				g.Expect(p).To(MatchRegexp("^in   secrets any (list|watch|patch)$"), "Secrets of tenants are neither made nor replaced nor deleted")
				g.Expect(role).To(Equal("forgeplane-manager"), "the servers have no business with them")
			}
			if recording.MatchString(p) {
				continue // rolebindings.yaml limits these to the Role that gives no right to anything
			}
			g.Expect(p).NotTo(MatchRegexp(`(rbac\.authorization\.k8s\.io|serviceaccounts|impersonate|escalate|bind)`), "%s: nobody makes himself more than he is", role)
			g.Expect(p).NotTo(MatchRegexp("apiservices any "), "%s: other APIs are not Forgeplane's", role)
		}
	}
}
