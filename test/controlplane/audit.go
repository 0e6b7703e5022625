package controlplane

import (
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

const (
	auditPolicyFile = "audit-policy.yaml"
	auditLogFile    = "audit.log"
)

// AuditLog is the path of the file in which kube-apiserver logs the requests of the users in Options.Audit. It has a line of JSON for each request,
// which is an Event of audit.k8s.io/v1 without bodies. A request is logged before it is answered.
func (c *ControlPlane) AuditLog() string { return c.path(auditLogFile) }

// writeAuditPolicy writes the policy that selects the users whose requests are logged.
func (c *ControlPlane) writeAuditPolicy(users []string) error {
	if len(users) == 0 {
		return nil // a policy without users would select everybody
	}
	policy := map[string]any{
		"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": []string{"RequestReceived"},
		"rules": []map[string]any{{"level": "Metadata", "users": users, "omitManagedFields": true}},
	}
	text, err := yaml.Marshal(policy)
	if err == nil {
		err = os.WriteFile(c.path(auditPolicyFile), text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("writing the audit policy: %w", err)
	}
	return nil
}

// auditArgs returns the arguments with which kube-apiserver logs requests. It logs each request before it answers, so the file is complete
// when a client has its answer.
func auditArgs(users []string) []string {
	if len(users) == 0 {
		return nil
	}
	return []string{
		"--audit-policy-file=" + auditPolicyFile, "--audit-log-path=" + auditLogFile, "--audit-log-mode=blocking",
		"--audit-log-maxsize=1024",
	}
}
