package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

const (
	// SecretOfVariable is the value of LabelSecret on Secrets with the values of CI variables.
	SecretOfVariable = "variable"

	// AnnotationSource is on a Secret of the platform with the value of a variable, if a Secret of the variable's namespace declares the
	// value. It identifies the version of that Secret, and the key.
	AnnotationSource = "forgeplane.dev/source"
)

// VariableType specifies how a job gets a variable.
// +kubebuilder:validation:Enum=EnvVar;File
type VariableType string

// Types of variables.
const (
	// VariableEnvVar puts the value into the environment of the job.
	VariableEnvVar VariableType = "EnvVar"
	// VariableFile writes the value to a file, and puts the path of the file into the environment of the job.
	VariableFile VariableType = "File"
)

// AnyEnvironment is the environment scope of variables for all jobs, whether or not they have an environment.
const AnyEnvironment = "*"

// VariableSecretReference refers to one key of a Secret in the namespace of a variable.
type VariableSecretReference struct {
	// name is the metadata.name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`

	// key is the key in the data of the Secret. Defaults to value.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[-._a-zA-Z0-9]+$')`,message="key must consist of letters, digits, hyphens, underscores and dots"
	// +kubebuilder:default=value
	// +optional
	Key string `json:"key,omitempty"`
}

// VariableSpec declares a CI variable of one project, of all projects below a group, or of the whole installation.
// +kubebuilder:validation:AtMostOneOf=projectRef;groupRef
// +kubebuilder:validation:XValidation:rule="has(self.projectRef) == has(oldSelf.projectRef) && has(self.groupRef) == has(oldSelf.groupRef)",message="projectRef and groupRef cannot replace each other, and cannot be added or removed: make a new object"
// +kubebuilder:validation:XValidation:rule="!has(self.hidden) || !self.hidden || has(self.masked) && self.masked",message="hidden can be true only if masked is true",fieldPath=".hidden"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.hidden) || !oldSelf.hidden || has(self.hidden) && self.hidden",message="hidden cannot be set back to false: make a new variable",fieldPath=".hidden"
type VariableSpec struct {
	// projectRef refers to a project in the same namespace, whose jobs get the variable. It cannot be changed to refer to another project.
	// +optional
	ProjectRef *Reference `json:"projectRef,omitempty"`

	// groupRef refers to a group in the same namespace. The jobs of every project below it get the variable. It cannot be changed to refer
	// to another group. Without projectRef and groupRef, the jobs of all projects of the installation get the variable; it must then be in
	// the namespace of the platform.
	// +optional
	GroupRef *Reference `json:"groupRef,omitempty"`

	// key is the name of the variable. It consists of letters, digits and underscores. It is unique in the project, group or installation
	// among variables with the same environmentScope. It cannot change.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_]+$')",message="key must consist of letters, digits and underscores"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="key cannot change: make a new variable"
	// +required
	Key string `json:"key"`

	// secretRef refers to the Secret with the value, in the same namespace. The Secret must have the label forgeplane.dev/secret=variable.
	// Without secretRef, the variable has the value that it received over REST.
	// +optional
	SecretRef *VariableSecretReference `json:"secretRef,omitempty"`

	// type specifies how a job gets the variable: in its environment, or as a file. Defaults to EnvVar.
	// +kubebuilder:default=EnvVar
	// +optional
	Type VariableType `json:"type,omitempty"`

	// protected limits the variable to pipelines of protected branches and tags. Defaults to false.
	// +optional
	Protected bool `json:"protected,omitempty"`

	// masked replaces the value in job logs. The value must then be a single line of at least 8 characters, all of them letters, digits or
	// _ + = / @ : . ~ - (with raw, any characters that are not white space). Defaults to false.
	// +optional
	Masked bool `json:"masked,omitempty"`

	// hidden keeps the value out of the REST API. It requires masked, and cannot be set back to false. Defaults to false.
	// +optional
	Hidden bool `json:"hidden,omitempty"`

	// raw keeps references to other variables in the value, such as $HOME, as they are. Defaults to false.
	// +optional
	Raw bool `json:"raw,omitempty"`

	// environmentScope limits the variable to jobs with a matching environment. It is the name of an environment, in which * stands for any
	// characters, as in review/*. Defaults to *, which also matches jobs without an environment.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-A-Za-z0-9_/${}. *]+$')",message="environmentScope must consist of letters, digits, spaces and the characters - _ / $ { } . *"
	// +kubebuilder:default="*"
	// +optional
	EnvironmentScope string `json:"environmentScope,omitempty"`

	// description describes the purpose of the variable.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Description string `json:"description,omitempty"`
}

// VariableStatus is the observed state of a variable.
type VariableStatus struct {
	CommonStatus `json:",inline"`
	TargetStatus `json:",inline"`

	// secretRef refers to the Secret, in the namespace of the platform, with the value that is in force: a copy of the declared one, or the
	// value that the variable received over REST. It is empty while there is no value.
	// +optional
	SecretRef LocalSecretReference `json:"secretRef,omitempty,omitzero"`
}

// Variable is a CI variable of one project, of all projects below a group, or of the whole installation.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=civar,categories=forge
// +kubebuilder:selectablefield:JSONPath=.spec.key
// +kubebuilder:selectablefield:JSONPath=.spec.projectRef.name
// +kubebuilder:selectablefield:JSONPath=.spec.groupRef.name
// +kubebuilder:printcolumn:name="Of",type=string,JSONPath=.status.targetPath
// +kubebuilder:printcolumn:name="Key",type=string,JSONPath=.spec.key
// +kubebuilder:printcolumn:name="Environment",type=string,JSONPath=.spec.environmentScope
// +kubebuilder:printcolumn:name="Protected",type=boolean,priority=1,JSONPath=.spec.protected
// +kubebuilder:printcolumn:name="Masked",type=boolean,priority=1,JSONPath=.spec.masked
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].status
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].reason
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=.metadata.creationTimestamp
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=.status.conditions[?(@.type=="Ready")].message
type Variable struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the declared state of the object.
	// +required
	Spec VariableSpec `json:"spec"`

	// status is the state of the object as Forgeplane last observed it.
	// +kubebuilder:default={observedGeneration:-1}
	// +optional
	Status VariableStatus `json:"status,omitempty"`
}

// GetCommonStatus returns the part of the status that every kind has.
func (v *Variable) GetCommonStatus() *CommonStatus { return &v.Status.CommonStatus }

// NewList returns an empty list of the kind.
func (v *Variable) NewList() ObjectList { return &VariableList{} }

// GetTargetStatus returns the part of the status about the project or group that the object is declared for.
func (v *Variable) GetTargetStatus() *TargetStatus { return &v.Status.TargetStatus }

// TargetRefs returns the references to the project and to the group that the object is declared for. Both are nil for a variable of the
// installation.
func (v *Variable) TargetRefs() (project, group *Reference) {
	return v.Spec.ProjectRef, v.Spec.GroupRef
}

// OfInstallation reports whether the object is declared for the whole installation.
func (v *Variable) OfInstallation() bool { return v.Spec.ProjectRef == nil && v.Spec.GroupRef == nil }

// VariableList is a list of variables.
// +kubebuilder:object:root=true
type VariableList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Variable `json:"items"`
}
