{{/* The arguments of a process: .root is the chart's own scope, .part what the process runs. */}}
{{- define "forgeplane.args" -}}
{{- $values := .root.Values -}}
- {{ .part }}
- --namespace={{ .root.Release.Namespace }}
{{- if ne .part "registry" }}
{{- with $values.egress.allowPrivateTargets }}
- {{ printf "--allow-private-targets=%s" (join "," .) | quote }}
{{- end }}
{{- with $values.egress.allowTargetPorts }}
- {{ printf "--allow-target-ports=%s" (join "," .) | quote }}
{{- end }}
{{- end }}
{{- range $values.rootGroups }}
- {{ printf "--root-groups=%s=%s" .namespace .path | quote }}
{{- end }}
{{- if include "forgeplane.sqlite" .root }}
- --activity-database=/var/lib/forgeplane/activity/activity.db
{{- end }}
{{- if not $values.registry.enabled }}
- --registry=off
{{- else }}
{{- if and $values.registry.separate.enabled (ne .part "registry") }}
- --registry=separate
{{- end }}
{{- if $values.registry.storageSecret.name }}
- --registry-storage-file=/etc/forgeplane/registry/storage.yaml
{{- else }}
- --registry-storage=/var/lib/forgeplane/registry
{{- end }}
{{- end }}
{{- if ne .part "registry" }}
- {{ printf "--blobs=%s" ($values.blobs.url | default "/var/lib/forgeplane/blobs") | quote }}
{{- with $values.limits }}
- --git-memory-limit={{ .gitMemory }}
{{- if ne (toString .gitMemoryTotal) "" }}
- --git-memory-total={{ .gitMemoryTotal }}
{{- end }}
- --git-cpu-limit={{ .gitCPU }}
- --max-archive-size={{ .archiveSize }}
- --max-push-size={{ .pushSize }}
- --max-push-unpacked-size={{ .pushUnpackedSize }}
- --max-repository-size={{ .repositorySize }}
- --max-refs={{ int .refs }}
- --max-import-size={{ .importSize }}
- --max-import-unpacked-size={{ .importUnpackedSize }}
- --import-timeout={{ .importTimeout }}
{{- end }}
{{- end }}
{{- if has .part (list "all" "manager") }}
- --mirror-concurrency={{ $values.mirrors.concurrency }}
- --mirror-concurrency-per-host={{ $values.mirrors.concurrencyPerHost }}
- --mirror-timeout={{ $values.mirrors.timeout }}
- --storage-move-concurrency={{ $values.storageMoves.concurrency }}
- --storage-move-concurrency-per-shard={{ $values.storageMoves.concurrencyPerShard }}
- --storage-move-drain={{ $values.storageMoves.drain }}
- --storage-move-removal={{ $values.storageMoves.removal }}
- --registry-cleanup-concurrency={{ $values.registry.cleanupConcurrency }}
- --quota-retained={{ int $values.quotas.retained }}
- --quota-retained-size={{ $values.quotas.retainedSize }}
{{- end }}
{{- if ne .part "registry" }}
- --home-namespace={{ $values.homeNamespace }}
{{- end }}
{{- if ne .part "manager" }}
- {{ printf "--external-url=%s" (include "forgeplane.externalURL" .root) | quote }}
{{- if $values.registry.enabled }}
- --registry-tag-delete={{ $values.registry.tagDelete }}
- --registry-max-size={{ $values.registry.maxSize }}
{{- with $values.registry.url }}
- {{ printf "--registry-url=%s" . | quote }}
{{- end }}
{{- end }}
{{- range $name, $number := $values.slots.number }}
- --slots={{ $name }}={{ int $number }}
{{- end }}
- --max-connections-per-address={{ int $values.limits.connectionsPerAddress }}
- --slots-per-caller={{ int $values.slots.perCaller }}
- --slots-reserved={{ int $values.slots.reserved }}
{{- with $values.trustedProxies }}
- {{ printf "--trusted-proxies=%s" (join "," .) | quote }}
{{- end }}
{{- end }}
{{- if has .part (list "all" "apiserver") }}
{{- with $values.kubernetesURL }}
- {{ printf "--kubernetes-url=%s" . | quote }}
{{- end }}
{{- if $values.registry.enabled }}
- --registry-token-lifetime={{ $values.registry.tokenLifetime }}
{{- end }}
{{- if ne $values.certificate.source "Managed" }}
- --tls-cert-file=/etc/forgeplane/tls/tls.crt
- --tls-private-key-file=/etc/forgeplane/tls/tls.key
- --tls-ca-file=/etc/forgeplane/tls/ca.crt
{{- end }}
- --runtime-dir=/tmp/forgeplane/run
- --rate-limit-authenticated={{ int $values.rateLimit.authenticated }}
- --rate-limit-unauthenticated={{ int $values.rateLimit.unauthenticated }}
- --rate-limit-git-authenticated={{ int $values.rateLimit.gitAuthenticated }}
- --rate-limit-git-unauthenticated={{ int $values.rateLimit.gitUnauthenticated }}
- --rate-limit-failed-sign-ins={{ int $values.rateLimit.failedSignIns }}
- --request-memory-total={{ $values.limits.requestMemoryTotal }}
- --upload-disk-total={{ $values.limits.uploadDiskTotal }}
- --quota-projects={{ int $values.quotas.projects }}
- --quota-groups={{ int $values.quotas.groups }}
- --quota-tokens={{ int $values.quotas.tokens }}
- --quota-settings={{ int $values.quotas.settings }}
- --rest-writes={{ $values.restWrites }}
{{- range $name, $on := $values.features }}
- --feature={{ $name }}={{ $on }}
{{- end }}
{{- end }}
{{- if $values.metrics.enabled }}
- --metrics-address=:9090
{{- end }}
{{- if $values.verbose }}
- --verbose
{{- end }}
{{- range (include "forgeplane.own" . | fromYaml).extraArgs }}
- {{ quote . }}
{{- end }}
{{- end }}
