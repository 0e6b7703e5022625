package aggregated

import (
	"net"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/forgeplane/forgeplane/apiserver/aggregated/route"
	"github.com/forgeplane/forgeplane/apiserver/aggregated/virtual"
	"github.com/forgeplane/forgeplane/internal/certificate"
)

// codecs encode what discovery and errors of the generic server are made of.
func codecs() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	scheme.AddUnversionedTypes(schema.GroupVersion{Version: "v1"},
		&metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	return serializer.NewCodecFactory(scheme)
}

// +kubebuilder:rbac:groups=flowcontrol.apiserver.k8s.io,resources=flowschemas;prioritylevelconfigurations,verbs=list;watch,roleName=forgeplane-apiserver
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create,roleName=forgeplane-apiserver
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create,roleName=forgeplane-apiserver

// build returns the generic API server. It needs no admission: endpoints check their requests, and virtual resources are read-only.
func (o Options) build(listener net.Listener, pair dynamiccertificates.CertKeyContentProvider) (*genericapiserver.GenericAPIServer, error) {
	config := genericapiserver.NewConfig(codecs())
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	config.EnableProfiling = false
	client, err := kubernetes.NewForConfig(o.Config)
	if err != nil {
		return nil, err
	}
	shared := informers.NewSharedInformerFactory(client, 0)

	serving := options.NewSecureServingOptions().WithLoopback()
	serving.Listener = listener
	serving.BindPort = listener.Addr().(*net.TCPAddr).Port
	serving.ServerCert.GeneratedCert = pair
	// All callers share the few connections of kube-apiserver.
	serving.HTTP2MaxStreamsPerConnection = 1000
	authentication := options.NewDelegatingAuthenticationOptions()
	authentication.RemoteKubeConfigFile = o.Kubeconfig
	authorization := options.NewDelegatingAuthorizationOptions()
	authorization.RemoteKubeConfigFile = o.Kubeconfig
	audit := options.NewAuditOptions()
	audit.PolicyFile, audit.LogOptions.Path = o.AuditPolicy, o.AuditLog
	features := options.NewFeatureOptions()
	features.EnableProfiling = false
	// Authentication adds to serving the authorities of clients, so it is after it.
	for _, apply := range []func() error{
		func() error { return audit.ApplyTo(config) },
		func() error { return features.ApplyTo(config, client, shared) },
		func() error { return serving.ApplyToConfig(config) },
		func() error { return authentication.ApplyTo(&config.Authentication, config.SecureServing, nil) },
		func() error { return authorization.ApplyTo(&config.Authorization) },
	} {
		if err := apply(); err != nil {
			return nil, err
		}
	}
	config.Authorization.Authorizer = identified{config.Authorization.Authorizer}
	// describe serves the documents, because those of the REST API come from its routes.
	config.OpenAPIV3Config, config.SkipOpenAPIInstallation = virtual.OpenAPI(o.Groups), true
	config.AddReadyzChecks(healthz.NamedCheck("tree", o.Ready))
	config.RequestInfoResolver = requestInfo{genericapiserver.NewRequestInfoResolver(config)}
	config.LongRunningFunc = waits(config.LongRunningFunc)
	front := newProxy(config.Authentication.RequestHeaderConfig)
	resolver := route.NewResolver(o.Known, o.Routes)
	config.BuildHandlerChainFunc = func(h http.Handler, c *genericapiserver.Config) http.Handler {
		chain := resolve(resolver, genericapiserver.DefaultBuildHandlerChain(h, c))
		return o.audited(front, chain)
	}
	server, err := config.Complete(shared).New("forgeplane", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, err
	}
	return server, o.mount(server, front, config.OpenAPIV3Config)
}

// keyPair serves the certificate of a source, and tells the listener of a new one.
type keyPair struct {
	source    *certificate.Source
	listeners []dynamiccertificates.Listener
}

// Name is for logs.
func (*keyPair) Name() string { return "forgeplane" }

// CurrentCertKeyContent returns the certificate and its key.
func (k *keyPair) CurrentCertKeyContent() (certificatePEM, keyPEM []byte) { return k.source.Pair() }

// AddListener is called while the server is set up, before anything changes.
func (k *keyPair) AddListener(l dynamiccertificates.Listener) { k.listeners = append(k.listeners, l) }

func (k *keyPair) changed() {
	for _, l := range k.listeners {
		l.Enqueue()
	}
}
