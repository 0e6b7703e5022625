// Package v1alpha1 contains the kinds of Forgeplane, in the API group forgeplane.dev: everything that a team or an administrator declares
// about a software forge.
//
// +kubebuilder:object:generate=true
// +groupName=forgeplane.dev
package v1alpha1
