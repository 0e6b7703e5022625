package chart_test

import (
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// operated are the values of an installation with several replicas that uses everything around it.
const operated = separate + `
externalURL: https://forge.example
image: {digest: "sha256:0123456789012345678901234567890123456789012345678901234567890123", pullSecrets: [registry]}
shards: [{name: fast, size: 100Gi, className: ssd, accessMode: ReadWriteMany, weight: 50}, {name: old, hostPath: /srv/old, weight: 0}, {name: nfs, existingClaim: nfs}]
registry: {url: "https://registry.example", separate: {enabled: true}, storageSecret: {name: images}}
blobs: {url: "s3://avatars"}
ingress: {enabled: true, className: public, annotations: {cert-manager.io/cluster-issuer: public}, tlsSecret: forge-tls}
httpRoute: {enabled: true, parentRefs: [{name: public, namespace: gateways, sectionName: https}]}
certificate: {source: CertManager, issuerRef: {name: internal, kind: ClusterIssuer}}
podDisruptionBudget: {enabled: true}
networkPolicy: {enabled: true, clients: [{namespaceSelector: {}}], egress: [{ports: [{port: 443}]}]}
metrics: {enabled: true, serviceMonitor: {enabled: true, labels: {release: prometheus}}}
labels: {team: platform}
podLabels: {mesh: "on"}
serviceAccount: {annotations: {cloud.example/role: forge}}
topologySpreadConstraints: [{topologyKey: zone, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway}]
extraEnv: [{name: HTTPS_PROXY, value: "http://proxy.example"}]
extraVolumes: [{name: roots, configMap: {name: roots}}]
extraVolumeMounts: [{name: roots, mountPath: /etc/ssl/roots}]
`

// of returns the names of the objects of a kind.
func of(all []*unstructured.Unstructured, kind string) (names []string) {
	for _, o := range all {
		if o.GetKind() == kind {
			names = append(names, o.GetName())
		}
	}
	return names
}

// jobArgs returns the arguments of the process of a Job.
func jobArgs(all []*unstructured.Unstructured, name string) []string {
	GinkgoHelper()
	return find[batchv1.Job](all, "Job", name).Spec.Template.Spec.Containers[0].Args
}

// mounted returns the volume and the path in it that a process has at a path.
func mounted(p corev1.PodSpec, path string) (volume corev1.VolumeSource, below string) {
	GinkgoHelper()
	at := slices.IndexFunc(p.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == path })
	Expect(at).To(BeNumerically(">=", 0), path)
	mount := p.Containers[0].VolumeMounts[at]
	at = slices.IndexFunc(p.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
	Expect(at).To(BeNumerically(">=", 0), mount.Name)
	return p.Volumes[at].VolumeSource, mount.SubPath
}

var _ = Describe("The values of the chart", func() {
	It("give one pod and one volume by default", func() {
		rendered := render()
		Expect(of(rendered, "Deployment")).To(Equal([]string{"forgeplane-all"}))
		Expect(of(rendered, "PersistentVolumeClaim")).To(Equal([]string{"forgeplane-repositories"}))
		for _, store := range []string{"repositories", "activity", "blobs", "registry"} {
			volume, below := mounted(pod(rendered, "all"), "/var/lib/forgeplane/"+store)
			Expect(volume.PersistentVolumeClaim.ClaimName).To(Equal("forgeplane-repositories"))
			Expect(below).To(Equal(store))
		}
		volume, _ := mounted(pod(render("--set=repositories.hostPath=/srv/forge"), "all"), "/var/lib/forgeplane/repositories")
		Expect(volume.HostPath.Path).To(Equal("/srv/forge"))
	})

	It("mount shards from claims and directories, and declare them", func() {
		rendered := render(valuesFile(operated))
		for _, part := range []string{"manager", "apiserver"} {
			fast, _ := mounted(pod(rendered, part), "/var/lib/forgeplane/shards/fast")
			Expect(fast.PersistentVolumeClaim.ClaimName).To(Equal("forgeplane-shard-fast"))
			old, _ := mounted(pod(rendered, part), "/var/lib/forgeplane/shards/old")
			Expect(old.HostPath.Path).To(Equal("/srv/old"))
			nfs, _ := mounted(pod(rendered, part), "/var/lib/forgeplane/shards/nfs")
			Expect(nfs.PersistentVolumeClaim.ClaimName).To(Equal("nfs"))
		}
		Expect(of(rendered, "PersistentVolumeClaim")).To(ConsistOf("forgeplane-repositories", "forgeplane-shard-fast"))
		var shards []string
		for _, o := range decode(find[corev1.ConfigMap](rendered, "ConfigMap", "forgeplane-setup").Data["shards.yaml"]) {
			spec := o.Object["spec"].(map[string]any)
			shards = append(shards, o.GetName()+" "+spec["path"].(string))
			if o.GetName() == "old" {
				Expect(spec).To(HaveKeyWithValue("weight", BeEquivalentTo(0)))
			}
		}
		Expect(shards).To(Equal([]string{
			"default /var/lib/forgeplane/repositories", "fast /var/lib/forgeplane/shards/fast", "old /var/lib/forgeplane/shards/old", "nfs /var/lib/forgeplane/shards/nfs",
		}))
		Expect(find[rbacv1.ClusterRole](rendered, "ClusterRole", "forgeplane-setup").Rules[0].ResourceNames).To(Equal([]string{"default", "fast", "old", "nfs"}))
	})

	It("bind groups to the role for the REST API through kube-apiserver", func() {
		Expect(of(render(), "ClusterRoleBinding")).NotTo(ContainElement("forgeplane-rest-users"))
		bound := find[rbacv1.ClusterRoleBinding](render("--set=restUsers={system:authenticated,oidc:team}"), "ClusterRoleBinding", "forgeplane-rest-users")
		Expect(bound.RoleRef.Name).To(Equal("forgeplane-rest-user"))
		Expect(bound.Subjects).To(HaveExactElements(
			And(HaveField("Kind", "Group"), HaveField("Name", "system:authenticated")), And(HaveField("Kind", "Group"), HaveField("Name", "oidc:team"))))
	})

	It("declare no administrator if asked not to", func() {
		const administrator = "/etc/forgeplane/setup/administrator.yaml"
		Expect(jobArgs(render(), "forgeplane-setup")).To(ContainElement(administrator))
		without := render("--set=admin.create=false")
		Expect(jobArgs(without, "forgeplane-setup")).NotTo(ContainElement(administrator))
		Expect(find[corev1.ConfigMap](without, "ConfigMap", "forgeplane-setup").Data).NotTo(HaveKey("administrator.yaml"))
		Expect(of(without, "Pod")).To(BeEmpty(), "a test without a token")
		Expect(find[rbacv1.ClusterRole](without, "ClusterRole", "forgeplane-setup").Rules).To(HaveLen(1))
	})

	It("lead clients through an Ingress and a Gateway to the forge, and to the registry at its own host", func() {
		rendered := render(valuesFile(operated))
		ingress := find[networkingv1.Ingress](rendered, "Ingress", "forgeplane")
		Expect(ingress.Spec.IngressClassName).To(HaveValue(Equal("public")))
		Expect(ingress.Annotations).To(HaveKeyWithValue("cert-manager.io/cluster-issuer", "public"))
		Expect(ingress.Spec.TLS).To(Equal([]networkingv1.IngressTLS{{SecretName: "forge-tls", Hosts: []string{"forge.example", "registry.example"}}}))
		want := map[string]string{"forge.example": "forgeplane", "registry.example": "forgeplane-registry"}
		Expect(ingress.Spec.Rules).To(HaveLen(len(want)))
		for _, rule := range ingress.Spec.Rules {
			to := rule.HTTP.Paths[0].Backend.Service
			Expect(to.Name).To(Equal(want[rule.Host]), rule.Host)
			Expect(find[corev1.Service](rendered, "Service", to.Name).Spec.Ports).To(ContainElement(HaveField("Name", to.Port.Name)))
		}
		for _, name := range []string{"forgeplane", "forgeplane-registry"} {
			spec := named(rendered, "HTTPRoute", name).Object["spec"].(map[string]any)
			host := spec["hostnames"].([]any)[0].(string)
			Expect(want[host]).To(Equal(name))
			Expect(spec["parentRefs"]).To(HaveLen(1))
			rule := spec["rules"].([]any)[0].(map[string]any)
			Expect(rule["backendRefs"]).To(HaveExactElements(HaveKeyWithValue("name", name)))
		}
		one := render("--set=externalURL=https://forge.example:8443,ingress.enabled=true")
		Expect(find[networkingv1.Ingress](one, "Ingress", "forgeplane").Spec.Rules).To(HaveExactElements(HaveField("Host", "forge.example")))
	})

	It("lead clients at the same host to the processes of the registry by the path", func() {
		rendered := render(valuesFile(operated), "--set=registry.url=https://forge.example")
		ingress := find[networkingv1.Ingress](rendered, "Ingress", "forgeplane").Spec.Rules
		Expect(ingress).To(HaveLen(1))
		to := map[string]string{}
		for _, p := range ingress[0].HTTP.Paths {
			to[p.Path] = p.Backend.Service.Name
		}
		Expect(to).To(Equal(map[string]string{"/": "forgeplane", "/v2": "forgeplane-registry"}))
		Expect(of(rendered, "HTTPRoute")).To(Equal([]string{"forgeplane"}))
		rules := named(rendered, "HTTPRoute", "forgeplane").Object["spec"].(map[string]any)["rules"].([]any)
		Expect(rules).To(HaveExactElements(
			And(HaveKeyWithValue("matches", HaveExactElements(HaveKeyWithValue("path", HaveKeyWithValue("value", "/v2")))),
				HaveKeyWithValue("backendRefs", HaveExactElements(HaveKeyWithValue("name", "forgeplane-registry")))),
			HaveKeyWithValue("backendRefs", HaveExactElements(HaveKeyWithValue("name", "forgeplane"))),
		))
	})

	It("take the certificate for kube-apiserver from cert-manager or a Secret", func() {
		issued := render(valuesFile(operated))
		certificate := named(issued, "Certificate", "forgeplane-apiserver").Object["spec"].(map[string]any)
		Expect(certificate["dnsNames"]).To(Equal([]any{"forgeplane-apiserver.forgeplane-system.svc"}))
		given := render("--set=certificate.source=Secret,certificate.secretName=given")
		Expect(of(given, "Certificate")).To(BeEmpty())
		for part, rendered := range map[string][]*unstructured.Unstructured{"apiserver": issued, "all": given} {
			tls, _ := mounted(pod(rendered, part), "/etc/forgeplane/tls")
			if part == "all" {
				Expect(tls.Secret.SecretName).To(Equal("given"))
			} else {
				Expect(tls.Secret.SecretName).To(Equal(certificate["secretName"]))
			}
			Expect(args(rendered, part)).To(ContainElements(
				"--tls-cert-file=/etc/forgeplane/tls/tls.crt", "--tls-private-key-file=/etc/forgeplane/tls/tls.key", "--tls-ca-file=/etc/forgeplane/tls/ca.crt"))
		}
		Expect(strings.Join(args(render(), "all"), " ")).NotTo(ContainSubstring("--tls-cert-file"))
	})

	It("protect and spread the pods of several replicas", func() {
		rendered := render(valuesFile(operated))
		for _, part := range []string{"manager", "apiserver", "registry"} {
			deployment := find[appsv1.Deployment](rendered, "Deployment", "forgeplane-"+part)
			Expect(deployment.Spec.Replicas).To(HaveValue(BeEquivalentTo(2)))
			if part != "manager" {
				Expect(deployment.Spec.Template.Spec.Containers[0].Lifecycle.PreStop.Sleep.Seconds).To(BeEquivalentTo(5))
			}
			budget := find[policyv1.PodDisruptionBudget](rendered, "PodDisruptionBudget", "forgeplane-"+part)
			Expect(budget.Spec.MaxUnavailable.IntVal).To(BeEquivalentTo(1))
			Expect(budget.Spec.Selector).To(Equal(deployment.Spec.Selector))
			spread := deployment.Spec.Template.Spec.TopologySpreadConstraints
			Expect(spread).To(HaveLen(1))
			Expect(spread[0].LabelSelector).To(Equal(deployment.Spec.Selector))
		}
	})

	It("restrict connections, and let Prometheus find the metrics", func() {
		rendered := render(valuesFile(operated))
		policy := find[networkingv1.NetworkPolicy](rendered, "NetworkPolicy", "forgeplane").Spec
		Expect(policy.PolicyTypes).To(ConsistOf(networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress))
		server := find[appsv1.Deployment](rendered, "Deployment", "forgeplane-apiserver").Spec.Template
		var ports []string
		for _, rule := range policy.Ingress {
			for _, port := range rule.Ports {
				ports = append(ports, port.Port.StrVal)
				Expect(server.Spec.Containers[0].Ports).To(ContainElement(HaveField("Name", port.Port.StrVal)))
			}
		}
		Expect(ports).To(ConsistOf("http", "tls", "health", "metrics"))
		Expect(policy.Ingress[0].From).To(HaveLen(2))
		Expect(policy.Ingress[1].From).To(BeEmpty(), "kubelet and kube-apiserver can have any address")
		Expect(policy.Egress).To(HaveExactElements(HaveField("To", HaveLen(1)), HaveField("To", BeEmpty())), "the pod of helm test, and the values")
		service := find[corev1.Service](rendered, "Service", "forgeplane-metrics")
		monitor := named(rendered, "ServiceMonitor", "forgeplane")
		Expect(monitor.GetLabels()).To(HaveKeyWithValue("release", "prometheus"))
		selector, _, err := unstructured.NestedStringMap(monitor.Object, "spec", "selector", "matchLabels")
		Expect(err).NotTo(HaveOccurred())
		for key, value := range selector {
			Expect(service.Labels).To(HaveKeyWithValue(key, value))
		}
		for key, value := range service.Spec.Selector {
			Expect(server.Labels).To(HaveKeyWithValue(key, value))
		}
		Expect(find[networkingv1.NetworkPolicy](render("--set=networkPolicy.enabled=true"), "NetworkPolicy", "forgeplane").Spec.PolicyTypes).
			To(ConsistOf(networkingv1.PolicyTypeIngress))
	})

	It("add labels, annotations, variables and volumes", func() {
		rendered := render(valuesFile(operated))
		for _, o := range rendered {
			Expect(o.GetLabels()).To(HaveKeyWithValue("team", "platform"), "%s %s", o.GetKind(), o.GetName())
		}
		server := find[appsv1.Deployment](rendered, "Deployment", "forgeplane-apiserver").Spec.Template
		Expect(server.Labels).To(HaveKeyWithValue("mesh", "on"))
		Expect(server.Spec.Containers[0].Image).To(Equal("localhost/forgeplane@sha256:0123456789012345678901234567890123456789012345678901234567890123"))
		Expect(server.Spec.Containers[0].Env).To(ContainElement(corev1.EnvVar{Name: "HTTPS_PROXY", Value: "http://proxy.example"}))
		roots, _ := mounted(server.Spec, "/etc/ssl/roots")
		Expect(roots.ConfigMap.Name).To(Equal("roots"))
		for _, name := range []string{"forgeplane-manager", "forgeplane-apiserver"} {
			Expect(find[corev1.ServiceAccount](rendered, "ServiceAccount", name).Annotations).To(HaveKeyWithValue("cloud.example/role", "forge"))
		}
	})

	It("keep the kinds, remove them, or leave them alone", func() {
		const keep, badges = "helm.sh/resource-policy", "badges.forgeplane.dev"
		Expect(named(render(), "CustomResourceDefinition", badges).GetAnnotations()).To(HaveKeyWithValue(keep, "keep"))
		Expect(named(render("--set=crds.keep=false"), "CustomResourceDefinition", badges).GetAnnotations()).NotTo(HaveKey(keep))
		Expect(of(render("--set=crds.enabled=false"), "CustomResourceDefinition")).To(BeEmpty())
	})

	It("give no role a wildcard, and no role or process a privilege", func() {
		for _, values := range []string{image, valuesFile(operated)} {
			rendered := render(values, "--set=restUsers={system:authenticated}")
			for _, kind := range []string{"ClusterRoleBinding", "RoleBinding"} {
				for _, binding := range of(rendered, kind) {
					to := find[rbacv1.ClusterRoleBinding](rendered, kind, binding).RoleRef
					if to.Name != "extension-apiserver-authentication-reader" { // a role of Kubernetes
						Expect(of(rendered, to.Kind)).To(ContainElement(to.Name), binding)
					}
				}
			}
			for _, kind := range []string{"ClusterRole", "Role"} {
				for _, role := range of(rendered, kind) {
					for _, rule := range find[rbacv1.ClusterRole](rendered, kind, role).Rules {
						if kind == "Role" && recordsIDs(rule) {
							continue // a policy limits these bindings to a Role that gives no right to anything
						}
						resources := rule.Resources
						if role == "forgeplane-rest-user" {
							// kube-apiserver takes segments of paths for resources, and in the plain path of a project they can have any name.
							Expect(rule.APIGroups).To(Equal([]string{"rest.forgeplane.dev"}))
							resources = nil
						}
						Expect(slices.Concat(rule.APIGroups, resources, rule.Verbs, rule.NonResourceURLs)).NotTo(ContainElement(ContainSubstring("*")), role)
						Expect(rule.Verbs).NotTo(ContainElement(BeElementOf("escalate", "bind", "impersonate")), role)
						Expect(rule.Resources).NotTo(ContainElement(BeElementOf(
							"serviceaccounts/token", "pods", "pods/exec", "clusterroles", "clusterrolebindings", "roles", "rolebindings", "nodes/proxy")), role)
					}
				}
			}
			for _, o := range rendered {
				spec, found, err := unstructured.NestedMap(o.Object, "spec", "template", "spec")
				Expect(err).NotTo(HaveOccurred())
				if o.GetKind() == "Pod" {
					spec, found = o.Object["spec"].(map[string]any), true
				}
				if !found {
					continue
				}
				Expect(spec).NotTo(Or(HaveKey("hostNetwork"), HaveKey("hostPID"), HaveKey("hostIPC")))
				Expect(spec["securityContext"]).To(HaveKeyWithValue("runAsNonRoot", true), o.GetName())
				for _, c := range spec["containers"].([]any) {
					Expect(c.(map[string]any)["securityContext"]).To(Equal(map[string]any{
						"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": map[string]any{"drop": []any{"ALL"}},
					}), o.GetName())
				}
			}
		}
	})
})

// recordsIDs reports whether a rule is one of those with which Forgeplane records declared ids in its namespace.
func recordsIDs(r rbacv1.PolicyRule) bool {
	return slices.Equal(r.Resources, []string{"rolebindings"}) ||
		slices.Equal(r.Resources, []string{"roles"}) && slices.Equal(r.ResourceNames, []string{"forgeplane-declared-ids"})
}
