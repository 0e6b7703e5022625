package chart_test

import (
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Refusals of the chart", func() {
	It("say in a sentence what values that do not go together need", func() {
		const outside = "externalURL=https://forge.example"
		const two = "mode=separate,activityDatabase.secret.name=postgres"
		for _, row := range []struct{ values, sentence string }{
			{"image.repository=forge.example/forgeplane:1.2", "image.repository must not contain a tag or digest: set image.tag or image.digest"},
			{"image.repository=forge.example/forgeplane@sha256:1", "image.repository must not contain a tag or digest"},
			{"mode=separate", "the mode separate requires PostgreSQL: set activityDatabase.secret.name"},
			{"apiserver.replicas=2", "apiserver.replicas has no effect in the mode all, in which one process does everything: set mode=separate and activityDatabase.secret.name, because SQLite serves one process only"},
			{"manager.replicas=2", "manager.replicas has no effect in the mode all"},
			{two + ",repositories.accessMode=ReadWriteOncePod", "repositories.accessMode must be ReadWriteMany in the mode separate"},
			{two + ",registry.accessMode=ReadWriteOncePod", "registry.accessMode must be ReadWriteMany in the mode separate"},
			{two + ",shards[0].name=b,shards[0].size=1Gi,shards[0].accessMode=ReadWriteOncePod", "shards.b.accessMode must be ReadWriteMany in the mode separate"},
			{"podDisruptionBudget.enabled=true", "podDisruptionBudget.enabled requires mode=separate"},
			{"registry.separate.enabled=true,registry.url=https://r.example", "registry.separate.enabled requires mode=separate, and registry.url"},
			{two + ",registry.separate.enabled=true", "registry.separate.enabled requires mode=separate, and registry.url"},
			{"ingress.enabled=true", "ingress.enabled and httpRoute.enabled require externalURL"},
			{"httpRoute.enabled=true,httpRoute.parentRefs[0].name=public", "ingress.enabled and httpRoute.enabled require externalURL"},
			{outside + ",httpRoute.enabled=true", "httpRoute.enabled requires httpRoute.parentRefs: name the listener of a Gateway"},
			{"externalURL=forge.example", "externalURL must be a URL such as https://forge.example, without a user, query and fragment"},
			{"externalURL=https://max:secret@forge.example", "externalURL must be a URL such as https://forge.example"},
			{"kubernetesURL=10.0.0.1", "kubernetesURL must be a URL"},
			{"registry.url=https://r.example/v2", "registry.url must be a URL such as https://registry.example, without a user, path, query and fragment"},
			{"registry.url=https://max:secret@r.example", "registry.url must be a URL such as https://registry.example"},
			{"registry.url=https://r.example?a=b", "registry.url must be a URL such as https://registry.example"},
			{"blobs.url=bucket", "blobs.url must be the URL of a bucket in S3, such as s3://bucket?region=eu-central-1"},
			{"blobs.url=gs://bucket", "blobs.url must be the URL of a bucket in S3"},
			{"externalURL=http://forge.example,ingress.enabled=true,ingress.tlsSecret=tls", "ingress.tlsSecret requires an externalURL that begins with https://"},
			{"metrics.serviceMonitor.enabled=true", "metrics.serviceMonitor.enabled requires metrics.enabled=true"},
			{"certificate.source=CertManager", "certificate.source=CertManager requires certificate.issuerRef"},
			{"certificate.source=Secret", "certificate.source=Secret requires certificate.secretName: name a Secret with tls.crt, tls.key and ca.crt"},
			{"shards[0].name=b", `the shard "b" must have exactly one of existingClaim, hostPath and size`},
			{"shards[0].name=b,shards[0].size=1Gi,shards[0].hostPath=/srv/b", `the shard "b" must have exactly one of existingClaim, hostPath and size`},
			{"shards[0].name=default,shards[0].size=1Gi", `the name "default"`},
			{"shards[0].name=b,shards[0].size=1Gi,shards[1].name=b,shards[1].size=1Gi", `two shards with the name "b"`},
			{"repositories.hostPath=/srv/r,repositories.existingClaim=c", "repositories must have at most one of existingClaim and hostPath"},
			{"limits.gitMemory=64Mi", "limits.gitMemory must be 128Mi or more, or 0 for any amount"},
			{"limits.gitMemory=65536Ki", "limits.gitMemory must be 128Mi or more"},
			{"limits.gitMemory=134M", "limits.gitMemory must be 128Mi or more"},
			{"limits.gitMemory=1.5k", "limits.gitMemory must be 128Mi or more"},
			{"limits.gitMemoryTotal=127.9Mi", "limits.gitMemoryTotal must be 128Mi or more, or 0 for any amount"},
			{"limits.requestMemoryTotal=63Mi", "limits.requestMemoryTotal must be 64Mi or more, or 0 for any amount"},
			{"limits.uploadDiskTotal=63Mi", "limits.uploadDiskTotal must be 64Mi or more, or 0 for any amount"},
			{"limits.gitCPU=999ms", "limits.gitCPU must be 1s or more, or 0s for any time"},
			{"limits.importTimeout=10ms", "limits.importTimeout must be 1s or more, or 0s for any time"},
			{"mirrors.timeout=0s", "mirrors.timeout must be more than 0: set it to a time such as 30s"},
			{"storageMoves.drain=0h0m", "storageMoves.drain must be more than 0"},
			{"storageMoves.removal=0s", "storageMoves.removal must be more than 0"},
			{"registry.tokenLifetime=59s", "registry.tokenLifetime must be between 1m and 24h"},
			{"registry.tokenLifetime=24h1s", "registry.tokenLifetime must be between 1m and 24h"},
			{"homeNamespace=" + namespace, "homeNamespace must not be the namespace of the release"},
		} {
			screen := admin.Fail("helm", template("--set="+row.values)...)
			Expect(strings.Join(strings.Fields(screen), " ")).To(ContainSubstring(row.sentence), row.values)
		}
		render("--set=image.repository=forge.example:5000/forgeplane,limits.gitMemory=128Mi")
	})

	It("name the value that is invalid, before anything is installed", func() {
		refused := map[string]string{
			"egress.allowPrivateTargets={http://git.internal}":         "/egress/allowPrivateTargets/0",
			"egress.allowPrivateTargets={10.0.0.0/8 a}":                "/egress/allowPrivateTargets/0",
			"egress.allowPrivateTargets=10.0.0.0/8":                    "/egress/allowPrivateTargets",
			"egress.allowTargetPorts={0}":                              "/egress/allowTargetPorts/0",
			"egress.allowTargetPorts={65536}":                          "/egress/allowTargetPorts/0",
			"egress.allowPrivateTarget={10.0.0.0/8}":                   "allowPrivateTarget",
			"imaeg.repository=a":                                       "imaeg",
			"mode=both":                                                "/mode",
			"manager.replicas=0":                                       "/manager/replicas",
			"rateLimit.authenticated=-1":                               "/rateLimit/authenticated",
			"limits.pushSize=much":                                     "/limits/pushSize",
			"limits.pushSize=10K":                                      "/limits/pushSize",
			"limits.gitMemory=134217728":                               "/limits/gitMemory",
			"blobs.size=10K":                                           "/blobs/size",
			"admin.username=r":                                         "/admin/username",
			"limits.refs=many":                                         "/limits/refs",
			"limits.importTimeout=soon":                                "/limits/importTimeout",
			"mirrors.timeout=soon":                                     "/mirrors/timeout",
			"mirrors.concurrency=0":                                    "/mirrors/concurrency",
			"registry.cleanupConcurrency=0":                            "/registry/cleanupConcurrency",
			"storageMoves.concurrency=0":                               "/storageMoves/concurrency",
			"storageMoves.drain=soon":                                  "/storageMoves/drain",
			"rootGroups={team-a}":                                      "/rootGroups/0",
			"slots.number.tree=4":                                      "/slots/number",
			"slots.perCaller=0":                                        "/slots/perCaller",
			"trustedProxies={10.0.0.1}":                                "/trustedProxies/0",
			"repositories.size=much":                                   "/repositories/size",
			"repositories.accessMode=ReadOnlyMany":                     "/repositories/accessMode",
			"homeNamespace=Home":                                       "/homeNamespace",
			"restWrites=Deny":                                          "/restWrites",
			"service.port=0":                                           "/service/port",
			"all.extraArgs={verbose}":                                  "/all/extraArgs/0",
			"image.repository=":                                        "/image/repository",
			"image.digest=sha256:1":                                    "/image/digest",
			"crds.install=true":                                        "install",
			"all.replicas=2":                                           "replicas",
			"certificate.source=Self":                                  "/certificate/source",
			"shards[0].name=B,shards[0].size=1Gi":                      "/shards/0/name",
			"shards[0].name=b,shards[0].hostPath=srv":                  "/shards/0/hostPath",
			"shards[0].name=b,shards[0].size=1Gi,shards[0].weight=101": "/shards/0/weight",
			"admin.username=_root":                                     "/admin/username",
			"admin.email=root":                                         "/admin/email",
			"admin.tokenSecret=":                                       "/admin/tokenSecret",
			"trustedProxies={10.0.0.0/33}":                             "/trustedProxies/0",
			"egress.allowPrivateTargets={10.0.0.0/99}":                 "/egress/allowPrivateTargets/0",
			"ingress.host=forge.example":                               "host",
			"podDisruptionBudget.maxUnavailable=0":                     "/podDisruptionBudget/maxUnavailable",
		}
		// Helm reports everything that the schema refuses, so one call tests many values. Each call can set a value once.
		for len(refused) > 0 {
			set := map[string]string{}
			for _, values := range slices.Sorted(maps.Keys(refused)) {
				name, _, _ := strings.Cut(values, "=")
				set[name] = values
			}
			screen := admin.Fail("helm", template("--set="+strings.Join(slices.Sorted(maps.Values(set)), ","))...)
			for _, values := range set {
				Expect(screen).To(ContainSubstring("'"+refused[values]+"'"), values)
				delete(refused, values)
			}
		}
	})
})
