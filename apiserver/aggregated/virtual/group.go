// Package virtual serves read-only Kubernetes resources whose objects are not in etcd: a Source makes them from what it stores elsewhere, such
// as the rows of a database. Clients get, list and watch them as any other resource, and RBAC decides who can.
package virtual

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/kube-openapi/pkg/common"
)

// Group is an API group with virtual resources in one version.
type Group struct {
	schema.GroupVersion
	// Resources are the resources, by the plural names that paths have.
	Resources map[string]Resource
	// Definitions are the OpenAPI definitions of the kinds and of all types that they use, as openapi-gen writes them.
	Definitions common.GetOpenAPIDefinitions
}

// Info returns the group in the form that a generic API server installs.
func (g Group) Info() *genericapiserver.APIGroupInfo {
	scheme := g.scheme()
	info := genericapiserver.NewDefaultAPIGroupInfo(g.Group, scheme, runtime.NewParameterCodec(scheme), serializer.NewCodecFactory(scheme))
	served := map[string]rest.Storage{}
	for name, r := range g.Resources {
		served[name] = &storage{Resource: r, resource: schema.GroupResource{Group: g.Group, Resource: name}}
	}
	info.VersionedResourcesStorageMap[g.Version] = served
	return &info
}

// scheme returns a scheme with the kinds and the fields by which clients can select objects.
func (g Group) scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	metav1.AddToGroupVersion(scheme, g.GroupVersion)
	for _, name := range slices.Sorted(maps.Keys(g.Resources)) {
		r := g.Resources[name]
		scheme.AddKnownTypes(g.GroupVersion, r.New(), r.NewList())
		known := r.fields(r.New())
		convert := func(label, value string) (string, string, error) {
			if !known.Has(label) {
				return "", "", fmt.Errorf("%q is not a known field selector: only %q", label, slices.Sorted(maps.Keys(known)))
			}
			return label, value, nil
		}
		// It is an error only for a kind without a version.
		_ = scheme.AddFieldLabelConversionFunc(g.WithKind(r.kind()), convert)
	}
	return scheme
}

// OpenAPI returns the configuration for the OpenAPI documents of groups, or nil if there are no groups.
func OpenAPI(groups []Group) *common.OpenAPIV3Config {
	if len(groups) == 0 {
		return nil
	}
	schemes := make([]*runtime.Scheme, len(groups))
	for i, g := range groups {
		schemes[i] = g.scheme()
	}
	definitions := func(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
		all := map[string]common.OpenAPIDefinition{}
		for _, g := range groups {
			maps.Copy(all, g.Definitions(ref))
		}
		return all
	}
	config := genericapiserver.DefaultOpenAPIV3Config(definitions, openapi.NewDefinitionNamer(schemes...))
	config.Info.Title = "Forgeplane"
	return config
}
