package rights_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/rights"
)

const roles = `
kind: ClusterRole
metadata: {name: forgeplane-manager}
rules:
- {apiGroups: [""], resources: [secrets], verbs: [list, patch]}
- {apiGroups: [forgeplane.dev], resources: [projects], verbs: [patch, pin, release]}
- {apiGroups: [forgeplane.dev], resources: [projects/status], verbs: [patch]}
---
kind: Role
metadata: {name: forgeplane-manager, namespace: forgeplane-system}
rules:
- {apiGroups: [""], resources: [secrets], verbs: [list]}
- {apiGroups: [""], resources: [services], resourceNames: [one], verbs: [create, patch]}
- {apiGroups: [rbac.authorization.k8s.io], resources: [rolebindings], verbs: [create]}
- {apiGroups: [rbac.authorization.k8s.io], resources: [roles], resourceNames: [forgeplane-declared-ids], verbs: [bind]}
`

// event is a line of an audit log.
func event(verb, ref, more string) string {
	return `{"verb":"` + verb + `","user":{"username":"system:serviceaccount:forgeplane-system:forgeplane-manager"},"objectRef":{` + ref + `},` + more + `}` + "\n"
}

const allowed = `"annotations":{"authorization.k8s.io/decision":"allow"}`

func TestUnused_returnsRightsThatNoRequestNeeded(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "role.yaml")
	g.Expect(os.WriteFile(file, []byte(roles), 0o600)).To(Succeed())
	granted, err := rights.Granted(file)
	g.Expect(err).NotTo(HaveOccurred())
	unused := func(lines ...string) []string {
		q, err := rights.Seen(strings.NewReader(strings.Join(lines, "")), "forgeplane-system")
		g.Expect(err).NotTo(HaveOccurred())
		return q.Unused(granted)
	}
	all := unused()
	g.Expect(all).To(Equal([]string{
		"forgeplane-manager everywhere: list secrets", "forgeplane-manager everywhere: patch projects.forgeplane.dev",
		"forgeplane-manager everywhere: patch projects/status.forgeplane.dev", "forgeplane-manager everywhere: patch secrets",
		"forgeplane-manager everywhere: pin projects.forgeplane.dev", "forgeplane-manager everywhere: release projects.forgeplane.dev",
		"forgeplane-manager in forgeplane-system: bind roles.rbac.authorization.k8s.io forgeplane-declared-ids",
		"forgeplane-manager in forgeplane-system: create rolebindings.rbac.authorization.k8s.io",
		"forgeplane-manager in forgeplane-system: create services one", "forgeplane-manager in forgeplane-system: list secrets",
		"forgeplane-manager in forgeplane-system: patch services one",
	}))
	project, service := `"resource":"projects","apiGroup":"forgeplane.dev","namespace":"acme","name":"a"`, `"resource":"services","namespace":"forgeplane-system","name":"one"`
	for title, tt := range map[string]struct {
		line string
		used []string
	}{
		"a list in one namespace needs the right in that namespace": {event("list", `"resource":"secrets","namespace":"forgeplane-system"`, allowed), all[9:10]},
		"a list of all namespaces needs the right everywhere":       {event("list", `"resource":"secrets"`, allowed), all[0:1]},
		"a subresource needs its own right":                         {event("patch", project+`,"subresource":"status"`, allowed), all[2:3]},
		"a request that sets an id needs the verb pin": {
			event("patch", project, `"annotations":{"authorization.k8s.io/decision":"allow","pin.forgeplane.dev/id":"7"}`), []string{all[1], all[4]},
		},
		"a request that releases a project needs the verb release": {
			event("patch", project, `"annotations":{"authorization.k8s.io/decision":"allow","finalizers.forgeplane.dev/released":"yes"}`), []string{all[1], all[5]},
		},
		"applying a missing object needs the verb create":           {event("patch", service, allowed+`,"responseStatus":{"code":201}`), []string{all[8], all[10]}},
		"applying an existing object does not need the verb create": {event("patch", service, allowed+`,"responseStatus":{"code":200}`), all[10:]},
		"creating a RoleBinding needs the verb bind":                {event("create", `"resource":"rolebindings","apiGroup":"rbac.authorization.k8s.io","namespace":"forgeplane-system"`, allowed), all[6:8]},
		"a right for one name does not cover other names":           {event("patch", strings.Replace(service, "one", "two", 1), allowed), nil},
		"a refused request needs no right":                          {event("patch", project, `"annotations":{"authorization.k8s.io/decision":"forbid"}`), nil},
		"requests of other accounts do not count":                   {strings.Replace(event("patch", project, allowed), "forgeplane-manager", "forgeplane-other", 1), nil},
	} {
		left := unused(tt.line)
		g.Expect(append(left, tt.used...)).To(ConsistOf(all), title)
	}
}

func TestSeen_reportsRefusedRequests(t *testing.T) {
	g := NewWithT(t)
	q, err := rights.Seen(strings.NewReader(event("get", `"resource":"pods","namespace":"acme","name":"a"`, `"annotations":{"authorization.k8s.io/decision":"forbid"}`)), "forgeplane-system")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(q.Refused).To(Equal([]string{"forgeplane-manager in acme: get pods a"}))
	_, err = rights.Seen(strings.NewReader("{"), "forgeplane-system")
	g.Expect(err).To(HaveOccurred())
}
