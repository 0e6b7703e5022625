// Package rights compares the permissions of Forgeplane's accounts with their requests: each rule of their roles must be needed by a
// request that kube-apiserver has seen.
package rights

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Right is a verb on a resource that a role allows.
type Right struct {
	// Role has the name of the account that it belongs to.
	Role string
	// Namespace is the namespace in which the right holds, or empty for all namespaces.
	Namespace string
	// Group and Resource are as in a rule of RBAC. A resource can be a subresource such as "projects/status".
	Group, Resource string
	// Name is the only name that the right holds for, or empty for all names.
	Name string
	Verb string
}

// String returns the right in a form that can be listed and compared.
func (r Right) String() string {
	where := "everywhere"
	if r.Namespace != "" {
		where = "in " + r.Namespace
	}
	resource := r.Resource
	if r.Group != "" {
		resource += "." + r.Group
	}
	return strings.TrimRight(fmt.Sprintf("%s %s: %s %s %s", r.Role, where, r.Verb, resource, r.Name), " ")
}

// OfSurvivors are the rights, as texts, with which a manager cleans up after servers that are killed. test/replicas kills servers, and
// test/conformance needs all other rights.
func OfSurvivors() []string {
	return []string{
		"forgeplane-manager everywhere: delete apiservices.apiregistration.k8s.io v1alpha1.activity.forgeplane.dev",
		"forgeplane-manager everywhere: delete apiservices.apiregistration.k8s.io v4.rest.forgeplane.dev",
		"forgeplane-manager everywhere: get apiservices.apiregistration.k8s.io v1alpha1.activity.forgeplane.dev",
		"forgeplane-manager everywhere: get apiservices.apiregistration.k8s.io v4.rest.forgeplane.dev",
		"forgeplane-manager in forgeplane-system: delete leases.coordination.k8s.io",
	}
}

// OfConflicts are the rights, as texts, with which a server reads an object again after a conflict of two writes. Whether one happens is chance.
func OfConflicts() []string {
	return []string{"forgeplane-apiserver everywhere: get registrycleanups.forgeplane.dev"}
}

// Granted returns the rights that the roles in a file grant, such as config/rbac/role.yaml, in order.
func Granted(path string) ([]Right, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading roles: %w", err)
	}
	defer file.Close()
	var all []Right
	for decoder := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		var role struct {
			metav1.ObjectMeta `json:"metadata"`
			Rules             []rbacv1.PolicyRule `json:"rules"`
		}
		if err := decoder.Decode(&role); errors.Is(err, io.EOF) {
			slices.SortFunc(all, func(a, b Right) int { return cmp.Compare(a.String(), b.String()) })
			return slices.Compact(all), nil
		} else if err != nil {
			return nil, fmt.Errorf("reading roles: %w", err)
		}
		for _, rule := range role.Rules {
			all = append(all, expand(role.Name, role.Namespace, rule)...)
		}
	}
}

func expand(role, namespace string, rule rbacv1.PolicyRule) (all []Right) {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, name := range names {
				for _, verb := range rule.Verbs {
					all = append(all, Right{Role: role, Namespace: namespace, Group: group, Resource: resource, Name: name, Verb: verb})
				}
			}
		}
	}
	return all
}
