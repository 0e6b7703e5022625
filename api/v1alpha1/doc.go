// Package v1alpha1 holds the kinds of Forgeplane, group forgeplane.dev: what a team or an
// administrator declares about a software forge.
//
// +kubebuilder:object:generate=true
// +groupName=forgeplane.dev
package v1alpha1
