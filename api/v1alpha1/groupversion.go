package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of every kind in this package.
var GroupVersion = schema.GroupVersion{Group: "forgeplane.dev", Version: "v1alpha1"}

// AddToScheme registers every kind of this package.
func AddToScheme(s *runtime.Scheme) error {
	for _, kind := range Kinds() {
		s.AddKnownTypes(GroupVersion, kind, kind.NewList())
	}
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
