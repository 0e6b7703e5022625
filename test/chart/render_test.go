package chart_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/forgeplane/forgeplane/test/manifest"
)

const namespace = "forgeplane-system"

// image names an image that is not the default.
const image = "--set=image.repository=forge.example/forgeplane"

// everything are values that all differ from the defaults.
const everything = `
image: {repository: forge.example/forgeplane, tag: v1, pullPolicy: Always, pullSecrets: [registry]}
all: {resources: {limits: {memory: 1Gi}}, extraArgs: ["--concurrency=3"]}
manager: {extraArgs: ["--leader-elect=true"]}
apiserver: {extraArgs: ["--pprof-address=:6060"]}
externalURL: https://forge.example
kubernetesURL: https://kubernetes.example:6443
homeNamespace: homes
restWrites: RefuseDeclared
rootGroups: [{namespace: team-a, path: team-a}, {namespace: platform, path: "*"}]
egress: {allowPrivateTargets: [10.0.0.0/8, "fd00::/8", 127.0.0.1, git.internal], allowTargetPorts: [80, 443, 8443]}
mirrors: {concurrency: 5, concurrencyPerHost: 2, timeout: 30m}
storageMoves: {concurrency: 6, concurrencyPerShard: 3, drain: 20s, removal: 1h}
limits: {gitMemory: 2Gi, gitMemoryTotal: 3Gi, requestMemoryTotal: 512Mi, uploadDiskTotal: 20Gi, connectionsPerAddress: 2000, gitCPU: 5m, archiveSize: 1Gi, pushSize: 500Mi, pushUnpackedSize: 5Gi, repositorySize: 0, refs: 2000000, importSize: "0", importUnpackedSize: 7Gi, importTimeout: 1h}
rateLimit: {authenticated: 5000, unauthenticated: 0, gitAuthenticated: 600, gitUnauthenticated: 0, failedSignIns: 5}
slots: {number: {git: 128, walks: 8}, perCaller: 10, reserved: 50}
quotas: {projects: 10, groups: 5, tokens: 0, settings: 100, retained: 20, retainedSize: 30Gi}
features: {changelog_commits_limitation: false, ci_job_token_scope: true, mr_approved_filter: true, restrict_merge_status_recheck: true, ssh_certificates_rest_endpoints: true}
trustedProxies: [10.0.0.0/8, "fd00::/8"]
repositories: {size: 1Ti, className: fast, accessMode: ReadWriteMany}
activityDatabase: {size: 2Gi, className: local}
blobs: {size: 3Gi, className: wide, accessMode: ReadWriteMany}
registry: {cleanupConcurrency: 5, url: "https://registry.example", size: 4Ti, className: wide, accessMode: ReadWriteMany, tokenLifetime: 10m, tagDelete: false, maxSize: 70Gi}
service: {type: LoadBalancer, port: 8000, annotations: {a: b}}
metrics: {enabled: true}
verbose: true
podAnnotations: {c: d}
nodeSelector: {disk: fast}
tolerations: [{key: forge, operator: Exists}]
affinity: {podAntiAffinity: {}}
`

// smallest has the smallest values that the chart accepts.
const smallest = `
limits: {gitMemory: 128Mi, gitMemoryTotal: 128Mi, requestMemoryTotal: 64Mi, uploadDiskTotal: 64Mi, gitCPU: 1s, importTimeout: 1s}
mirrors: {concurrency: 1, concurrencyPerHost: 1, timeout: 1ms}
storageMoves: {concurrency: 1, concurrencyPerShard: 1, drain: 1ms, removal: 1ms}
registry: {cleanupConcurrency: 1, tokenLifetime: 1m}
slots: {number: {git: 1}, perCaller: 1, reserved: 0}
`

// separate are the values of processes that share a database.
const separate = "mode: separate\nactivityDatabase: {secret: {name: forgeplane-activity, key: dsn}}\n"

// replicas are the numbers of these processes, which the mode all refuses.
const replicas = "manager: {replicas: 3, extraArgs: [\"--leader-elect=true\"]}\napiserver: {replicas: 4, extraArgs: [\"--pprof-address=:6060\"]}\n"

// valuesFile writes values to a file, which is the same for the same values, and returns the argument that names the file.
func valuesFile(values string) string {
	GinkgoHelper()
	path := filepath.Join(filepath.Dir(checkout.Dir), fmt.Sprintf("%x.yaml", sha256.Sum256([]byte(values))))
	Expect(os.WriteFile(path, []byte(values), 0o600)).To(Succeed())
	return "--values=" + path
}

// template returns the arguments of helm that render the chart.
func template(args ...string) []string {
	return slices.Concat([]string{"template", "forgeplane", "charts/forgeplane", "--namespace=" + namespace}, args)
}

// renderings are the objects that Helm has rendered, by its arguments. Many specs look at the same ones.
var renderings = map[string][]*unstructured.Unstructured{}

func render(args ...string) []*unstructured.Unstructured {
	GinkgoHelper()
	key := strings.Join(args, " ")
	if renderings[key] == nil {
		renderings[key] = decode(admin.Do("helm", template(args...)...))
	}
	own := make([]*unstructured.Unstructured, len(renderings[key]))
	for i := range own {
		own[i] = renderings[key][i].DeepCopy()
	}
	return own
}

func decode(text string) []*unstructured.Unstructured {
	GinkgoHelper()
	all, err := manifest.Read(strings.NewReader(text))
	Expect(err).NotTo(HaveOccurred())
	return all
}

// named returns the object of a kind with a name.
func named(all []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	GinkgoHelper()
	at := slices.IndexFunc(all, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind && o.GetName() == name })
	Expect(at).To(BeNumerically(">=", 0), "%s %s", kind, name)
	return all[at]
}

// find is named with the Go type of the object, which has every field that is set.
func find[T any](all []*unstructured.Unstructured, kind, name string) *T {
	GinkgoHelper()
	object := new(T)
	Expect(runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(named(all, kind, name).Object, object, true)).To(Succeed())
	return object
}

// pod returns the pod of the Deployment of a part.
func pod(all []*unstructured.Unstructured, part string) corev1.PodSpec {
	GinkgoHelper()
	return find[appsv1.Deployment](all, "Deployment", "forgeplane-"+part).Spec.Template.Spec
}

// args returns the arguments of the process of a part.
func args(all []*unstructured.Unstructured, part string) []string {
	GinkgoHelper()
	return pod(all, part).Containers[0].Args
}

var _ = Describe("The chart", func() {
	It("follows the recommendations of Helm", func() {
		for _, values := range []string{image, valuesFile(everything)} {
			admin.Do("helm", "lint", "charts/forgeplane", "--strict", values)
		}
	})

	It("passes its values to the processes that use them", func() {
		of := args(render(valuesFile(everything)), "all")
		Expect(of).To(Equal([]string{
			"all", "--namespace=forgeplane-system", "--allow-private-targets=10.0.0.0/8,fd00::/8,127.0.0.1,git.internal",
			"--allow-target-ports=80,443,8443",
			"--root-groups=team-a=team-a", "--root-groups=platform=*", "--activity-database=/var/lib/forgeplane/activity/activity.db", "--registry-storage=/var/lib/forgeplane/registry", "--blobs=/var/lib/forgeplane/blobs",
			"--git-memory-limit=2Gi", "--git-memory-total=3Gi", "--git-cpu-limit=5m", "--max-archive-size=1Gi", "--max-push-size=500Mi", "--max-push-unpacked-size=5Gi", "--max-repository-size=0", "--max-refs=2000000",
			"--max-import-size=0", "--max-import-unpacked-size=7Gi", "--import-timeout=1h",
			"--mirror-concurrency=5", "--mirror-concurrency-per-host=2", "--mirror-timeout=30m",
			"--storage-move-concurrency=6", "--storage-move-concurrency-per-shard=3", "--storage-move-drain=20s", "--storage-move-removal=1h", "--registry-cleanup-concurrency=5",
			"--quota-retained=20", "--quota-retained-size=30Gi",
			"--home-namespace=homes", "--external-url=https://forge.example", "--registry-tag-delete=false", "--registry-max-size=70Gi", "--registry-url=https://registry.example",
			"--slots=git=128", "--slots=walks=8", "--max-connections-per-address=2000", "--slots-per-caller=10", "--slots-reserved=50", "--trusted-proxies=10.0.0.0/8,fd00::/8",
			"--kubernetes-url=https://kubernetes.example:6443", "--registry-token-lifetime=10m", "--runtime-dir=/tmp/forgeplane/run",
			"--rate-limit-authenticated=5000", "--rate-limit-unauthenticated=0", "--rate-limit-git-authenticated=600", "--rate-limit-git-unauthenticated=0",
			"--rate-limit-failed-sign-ins=5", "--request-memory-total=512Mi", "--upload-disk-total=20Gi",
			"--quota-projects=10", "--quota-groups=5", "--quota-tokens=0", "--quota-settings=100", "--rest-writes=RefuseDeclared", "--feature=changelog_commits_limitation=false", "--feature=ci_job_token_scope=true", "--feature=mr_approved_filter=true",
			"--feature=restrict_merge_status_recheck=true", "--feature=ssh_certificates_rest_endpoints=true",
			"--metrics-address=:9090", "--verbose", "--concurrency=3",
		}))
		Expect(args(render(image), "all")).To(ContainElement("--external-url=http://forgeplane.forgeplane-system.svc"))
		Expect(strings.Join(args(render(image), "all"), " ")).NotTo(ContainSubstring("--allow-private-targets"))
	})

	It("runs parts that share a database in separate processes, with the URL in no argument", func() {
		rendered := render(valuesFile(everything), valuesFile(separate+replicas))
		for part, replicas := range map[string]int32{"manager": 3, "apiserver": 4} {
			Expect(find[appsv1.Deployment](rendered, "Deployment", "forgeplane-"+part).Spec.Replicas).To(HaveValue(Equal(replicas)))
			Expect(strings.Join(args(rendered, part), " ")).NotTo(ContainSubstring("--activity-database"))
			environment := pod(rendered, part).Containers[0].Env
			Expect(environment).To(HaveLen(1))
			Expect(environment[0].Name).To(Equal("FORGEPLANE_ACTIVITY_DATABASE"))
			Expect(environment[0].ValueFrom.SecretKeyRef.Key).To(Equal("dsn"))
			Expect(args(rendered, part)).To(ContainElements(HavePrefix("--allow-private-targets=10.0.0.0/8,"), "--home-namespace=homes"))
		}
		for _, o := range rendered {
			Expect(o.GetName()).NotTo(BeElementOf("forgeplane-all", "forgeplane-activity"), o.GetKind())
		}
	})

	It("mounts a volume for avatars in every process, unless they are in an object store", func() {
		for values, mounted := range map[string]bool{everything + separate: true, separate + "image: {repository: forge.example/forgeplane}\nblobs: {url: 's3://avatars?region=eu-central-1'}\n": false} {
			rendered := render(valuesFile(values))
			for _, part := range []string{"manager", "apiserver"} {
				mounts := pod(rendered, part).Containers[0].VolumeMounts
				if mounted {
					Expect(mounts).To(ContainElement(HaveField("MountPath", "/var/lib/forgeplane/blobs")))
					Expect(args(rendered, part)).To(ContainElement("--blobs=/var/lib/forgeplane/blobs"))
					claim := find[corev1.PersistentVolumeClaim](rendered, "PersistentVolumeClaim", "forgeplane-blobs")
					Expect(claim.Spec.AccessModes).To(HaveExactElements(corev1.ReadWriteMany))
					Expect(claim.Spec.StorageClassName).To(HaveValue(Equal("wide")))
				} else {
					Expect(mounts).NotTo(ContainElement(HaveField("MountPath", "/var/lib/forgeplane/blobs")))
					Expect(args(rendered, part)).To(ContainElement("--blobs=s3://avatars?region=eu-central-1"))
				}
			}
		}
	})

	It("stores images in a volume, in the storage of a Secret, or not at all", func() {
		const images, configured = "/var/lib/forgeplane/registry", "/etc/forgeplane/registry"
		for values, want := range map[string][]string{
			everything + separate: {"--registry-storage=" + images, images},
			separate + "image: {repository: forge.example/forgeplane}\nregistry: {storageSecret: {name: images, key: s3}}\n": {"--registry-storage-file=" + configured + "/storage.yaml", configured},
			separate + "image: {repository: forge.example/forgeplane}\nregistry: {enabled: false}\n":                         {"--registry=off", ""},
		} {
			rendered := render(valuesFile(values))
			for _, part := range []string{"manager", "apiserver"} {
				Expect(args(rendered, part)).To(ContainElement(want[0]))
				var mounted string
				for _, m := range pod(rendered, part).Containers[0].VolumeMounts {
					if m.Name == "registry" {
						mounted = m.MountPath
					}
				}
				Expect(mounted).To(Equal(want[1]))
			}
			var claims []string
			for _, o := range rendered {
				if o.GetKind() == "PersistentVolumeClaim" && o.GetName() == "forgeplane-registry" {
					claims = append(claims, o.GetName())
				}
			}
			Expect(claims).To(HaveLen(map[bool]int{true: 1, false: 0}[want[1] == images]))
		}
	})

	It("runs the container registry in processes of its own if asked to", func() {
		rendered := render(valuesFile(everything), valuesFile(separate), "--set=registry.separate.enabled=true", "--set=registry.separate.replicas=5", "--set=registry.separate.extraArgs={--pprof-address=:6060}")
		Expect(find[appsv1.Deployment](rendered, "Deployment", "forgeplane-registry").Spec.Replicas).To(HaveValue(Equal(int32(5))))
		Expect(args(rendered, "registry")).To(Equal([]string{
			"registry", "--namespace=forgeplane-system", "--root-groups=team-a=team-a", "--root-groups=platform=*", "--registry-storage=/var/lib/forgeplane/registry",
			"--external-url=https://forge.example", "--registry-tag-delete=false", "--registry-max-size=70Gi", "--registry-url=https://registry.example",
			"--slots=git=128", "--slots=walks=8", "--max-connections-per-address=2000", "--slots-per-caller=10", "--slots-reserved=50", "--trusted-proxies=10.0.0.0/8,fd00::/8",
			"--metrics-address=:9090", "--verbose", "--pprof-address=:6060",
		}))
		process := pod(rendered, "registry")
		Expect(process.ServiceAccountName).To(Equal("forgeplane-apiserver"))
		var mounted []string
		for _, m := range process.Containers[0].VolumeMounts {
			mounted = append(mounted, m.Name)
		}
		Expect(mounted).To(ConsistOf("registry", "tmp"))
		for _, part := range []string{"manager", "apiserver"} {
			Expect(args(rendered, part)).To(ContainElement("--registry=separate"))
		}
		service := find[corev1.Service](rendered, "Service", "forgeplane-registry").Spec
		Expect(service.Selector).To(HaveKeyWithValue("app.kubernetes.io/component", "registry"))
		Expect(process.Containers[0].Ports).To(ContainElement(HaveField("Name", service.Ports[0].TargetPort.StrVal)))
	})

	It("gives each process its own account with the rights of its part", func() {
		for mode, parts := range map[string]map[string]string{
			image: {"all": "forgeplane"},
			valuesFile(separate + "image: {repository: forge.example/forgeplane}"): {"manager": "forgeplane-manager", "apiserver": "forgeplane-apiserver"},
		} {
			// The accounts of Jobs have names of their own.
			rendered := slices.DeleteFunc(render(mode), func(o *unstructured.Unstructured) bool {
				return strings.HasSuffix(o.GetName(), "-setup") || strings.HasSuffix(o.GetName(), "-uninstall")
			})
			var accounts, used []string
			for part, account := range parts {
				Expect(pod(rendered, part).ServiceAccountName).To(Equal(account))
				used = append(used, account)
			}
			for _, o := range rendered {
				switch o.GetKind() {
				case "ServiceAccount":
					accounts = append(accounts, o.GetName())
				case "ClusterRoleBinding", "RoleBinding":
					subjects := o.Object["subjects"].([]any)
					Expect(subjects).To(HaveLen(1), o.GetName())
					of := subjects[0].(map[string]any)["name"].(string)
					Expect(used).To(ContainElement(of))
					if of != "forgeplane" && o.GetName() != "forgeplane-authentication-reader" {
						Expect(of).To(Equal(o.GetName()), "who has whose rights")
					}
				}
			}
			Expect(accounts).To(ConsistOf(used))
		}
	})

	It("has Services that lead to the servers", func() {
		for part, values := range map[string]string{"all": image, "apiserver": separate + "image: {repository: forge.example/forgeplane}"} {
			if part == "apiserver" {
				values = valuesFile(values)
			}
			rendered := render(values)
			template := find[appsv1.Deployment](rendered, "Deployment", "forgeplane-"+part).Spec.Template
			for _, name := range []string{"forgeplane", "forgeplane-apiserver"} {
				spec := find[corev1.Service](rendered, "Service", name).Spec
				for key, value := range spec.Selector {
					Expect(template.Labels).To(HaveKeyWithValue(key, value), "%s for %s", name, part)
				}
				Expect(template.Spec.Containers[0].Ports).To(ContainElement(HaveField("Name", spec.Ports[0].TargetPort.StrVal)))
			}
		}
	})

	It("uses only arguments that the program accepts, also with the smallest values", func() {
		// The program validates its arguments before it reads the kubeconfig.
		started := admin.With("FORGEPLANE_ACTIVITY_DATABASE=postgres://localhost/activity")
		for _, values := range []string{
			image, valuesFile(everything), valuesFile(everything + separate), valuesFile(operated), valuesFile(smallest),
			"--set=limits.gitMemory=0,limits.gitMemoryTotal=0,limits.requestMemoryTotal=0,limits.uploadDiskTotal=0,limits.gitCPU=0s,limits.importTimeout=0s",
			"--set=blobs.url=file:///mnt/blobs,registry.enabled=false,registry.tokenLifetime=30s",
		} {
			rendered := render(values)
			for _, name := range of(rendered, "Deployment") {
				part := strings.TrimPrefix(name, "forgeplane-")
				Expect(started.Fail(checkout.Program("forgeplane"), append(args(rendered, part), "--kubeconfig=/nonexistent")...)).
					To(ContainSubstring("reading --kubeconfig"), "%s %s", values, part)
			}
		}
		Expect(admin.Fail(checkout.Program("forgeplane"), "all", "--no-such-flag", "--help")).To(ContainSubstring("unknown flag"))
	})
})
