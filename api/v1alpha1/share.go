package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Share gives the members of another group a role in a project or group, and in everything below it.
type Share struct {
	// groupRef refers to the group whose members get the role: by name in the same namespace, by path or id in any namespace.
	// +required
	GroupRef Reference `json:"groupRef"`

	// role is the highest role that the members of the group get. A member with a lower role in the group gets that role.
	// +required
	Role Role `json:"role"`

	// expiresAt is the time at which the share ends. If omitted, the share never ends.
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
}

// Shareable is a kind that can be shared with groups.
// +kubebuilder:object:generate=false
type Shareable interface {
	Object
	// Shares returns the declared shares, and the address of what the status records of the groups that they led to.
	Shares() (declared []Share, led *[]Reference)
}

// Shares implements Shareable.
func (g *Group) Shares() (declared []Share, led *[]Reference) {
	return g.Spec.SharedWith, &g.Status.RecordedShares
}

// Shares implements Shareable.
func (p *Project) Shares() (declared []Share, led *[]Reference) {
	return p.Spec.SharedWith, &p.Status.RecordedShares
}
