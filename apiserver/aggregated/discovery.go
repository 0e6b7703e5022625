package aggregated

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/kube-openapi/pkg/builder3"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/common/restfuladapter"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/forgeplane/forgeplane/apiserver/aggregated/route"
)

// resources returns the resources of the routes for discovery: only subresources, such as projects/labels, with the verbs that RBAC asks
// for. A resource without a slash is one that kubectl and controllers get, list and delete as objects of Kubernetes; it would stand beside
// the custom resource of the same name.
func resources(routes []route.Pattern) []metav1.APIResource {
	verbs := map[string][]string{}
	for _, r := range routes {
		parts := strings.Split(strings.Trim(r.Path, "/"), "/")
		if len(parts) < 3 || !strings.HasPrefix(parts[1], "{") || strings.HasPrefix(parts[2], "{") {
			continue
		}
		name, v := parts[0]+"/"+parts[2], verb(r.Method, true)
		if !slices.Contains(verbs[name], v) {
			verbs[name] = append(verbs[name], v)
		}
	}
	all := make([]metav1.APIResource, 0, len(verbs))
	for name, v := range verbs {
		slices.Sort(v)
		all = append(all, metav1.APIResource{Name: name, Kind: "REST", Verbs: v})
	}
	slices.SortFunc(all, func(a, b metav1.APIResource) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// discover serves discovery, in both of its forms.
func (o Options) discover(s *genericapiserver.GenericAPIServer) error {
	served := metav1.GroupVersionForDiscovery{GroupVersion: GroupName + "/" + Version, Version: Version}
	group := metav1.APIGroup{Name: GroupName, Versions: []metav1.GroupVersionForDiscovery{served}, PreferredVersion: served}
	list := resources(o.Routes)
	s.DiscoveryGroupManager.AddGroup(group)
	groups := discovery.NewAPIGroupHandler(s.Serializer, group)
	versions := discovery.NewAPIVersionHandler(s.Serializer, GroupVersion,
		discovery.APIResourceListerFunc(func() []metav1.APIResource { return list }))
	for path, h := range map[string]http.Handler{"/apis/" + GroupName: groups, Prefix: versions} {
		s.Handler.NonGoRestfulMux.Handle(path, h)
	}
	aggregated, err := endpoints.ConvertGroupVersionIntoToDiscovery(list)
	if err != nil {
		return err
	}
	s.AggregatedDiscoveryGroupManager.AddGroupVersion(GroupName, apidiscoveryv2.APIVersionDiscovery{
		Version: Version, Resources: aggregated, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent,
	})
	return nil
}

// describe serves OpenAPI, with a document of version 3 for each group. Version 2 names no path: kubectl looks for the schemas of objects in it.
// The whole description of the endpoints is a document of the tree's own.
func (o Options) describe(s *genericapiserver.GenericAPIServer, definitions *common.OpenAPIV3Config) error {
	m := s.Handler.NonGoRestfulMux
	info := &spec.Info{InfoProps: spec.InfoProps{Title: "Forgeplane REST API", Version: Version}}
	handler.NewOpenAPIService(&spec.Swagger{SwaggerProps: spec.SwaggerProps{
		Swagger: "2.0", Info: info, Paths: &spec.Paths{Paths: map[string]spec.PathItem{}}, Definitions: spec.Definitions{},
	}}).RegisterOpenAPIVersionedService("/openapi/v2", m)

	paths := map[string]*spec3.Path{}
	for _, r := range o.Routes {
		path := Prefix + r.Path
		if paths[path] == nil {
			paths[path] = &spec3.Path{PathProps: spec3.PathProps{Parameters: parameters(r.Path)}}
		}
		operation := &spec3.Operation{OperationProps: spec3.OperationProps{
			OperationId: r.Method + r.Path,
			Responses: &spec3.Responses{ResponsesProps: spec3.ResponsesProps{
				Default: &spec3.Response{ResponseProps: spec3.ResponseProps{Description: "See /api/v4/openapi.json."}},
			}},
		}}
		switch p := paths[path]; r.Method {
		case http.MethodGet:
			p.Get = operation
		case http.MethodPost:
			p.Post = operation
		case http.MethodPut:
			p.Put = operation
		case http.MethodPatch:
			p.Patch = operation
		case http.MethodDelete:
			p.Delete = operation
		}
	}
	v3 := handler3.NewOpenAPIService()
	v3.UpdateGroupVersion(strings.TrimPrefix(Prefix, "/"), &spec3.OpenAPI{Version: "3.0.0", Info: info, Paths: &spec3.Paths{Paths: paths}})
	for _, g := range o.Groups {
		at := "/apis/" + g.GroupVersion.String()
		all := s.Handler.GoRestfulContainer.RegisteredWebServices()
		services := all[:0:0]
		for _, w := range all {
			if w.RootPath() == at {
				services = append(services, w)
			}
		}
		document, err := builder3.BuildOpenAPISpecFromRoutes(restfuladapter.AdaptWebServices(services), definitions)
		if err != nil {
			return fmt.Errorf("describing the group %s: %w", g.GroupVersion, err)
		}
		v3.UpdateGroupVersion(strings.TrimPrefix(at, "/"), document)
	}
	return v3.RegisterOpenAPIV3VersionedService("/openapi/v3", m)
}

func parameters(path string) []*spec3.Parameter {
	var all []*spec3.Parameter
	for part := range strings.SplitSeq(path, "/") {
		if strings.HasPrefix(part, "{") {
			all = append(all, &spec3.Parameter{ParameterProps: spec3.ParameterProps{
				Name: strings.Trim(part, "{}"), In: "path", Required: true, Schema: spec.StringProperty(),
			}})
		}
	}
	return all
}
