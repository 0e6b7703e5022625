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
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9-]{10}T[0-9:.]{8,}(Z|[+-][0-9:]{5})$') && timestamp(self).getFullYear() > 0",message="expiresAt must be a date and a time, as in 2027-01-31T00:00:00Z"
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
