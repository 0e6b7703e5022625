{{/* The labels of every object. */}}
{{- define "forgeplane.labels" -}}
{{ include "forgeplane.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* The labels that never change. */}}
{{- define "forgeplane.selector" -}}
app.kubernetes.io/name: forgeplane
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* What the pods are whom clients talk to. */}}
{{- define "forgeplane.server" -}}
{{ include "forgeplane.selector" . }}
app.kubernetes.io/component: {{ ternary "all" "apiserver" (eq .Values.mode "all") }}
{{- end }}

{{- define "forgeplane.image" -}}
{{ required "image.repository is to be set: an image that has forgeplane, forgeplane-hook and git in its PATH, as docs/helm.md says" .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "forgeplane.externalURL" -}}
{{- $port := ternary "" (printf ":%v" .Values.service.port) (eq (int .Values.service.port) 80) -}}
{{ .Values.externalURL | default (printf "http://forgeplane.%s.svc%s" .Release.Namespace $port) }}
{{- end }}

{{/* Whether the activity database is SQLite. */}}
{{- define "forgeplane.sqlite" -}}
{{ if not .Values.activityDatabase.secret.name }}true{{ end }}
{{- end }}

{{/* The arguments of a process: .root is the chart's own scope, .part what the process runs. */}}
{{- define "forgeplane.args" -}}
{{- $values := .root.Values -}}
- {{ .part }}
- --namespace={{ .root.Release.Namespace }}
{{- with $values.egress.allowPrivateTargets }}
- {{ printf "--allow-private-targets=%s" (join "," .) | quote }}
{{- end }}
{{- with $values.egress.allowTargetPorts }}
- {{ printf "--allow-target-ports=%s" (join "," .) | quote }}
{{- end }}
{{- range $values.rootGroups }}
- {{ printf "--root-groups=%s=%s" .namespace .path | quote }}
{{- end }}
{{- if include "forgeplane.sqlite" .root }}
- --activity-database=/var/lib/forgeplane/activity/activity.db
{{- end }}
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
{{- if ne .part "apiserver" }}
- --mirror-concurrency={{ $values.mirrors.concurrency }}
- --mirror-concurrency-per-host={{ $values.mirrors.concurrencyPerHost }}
- --mirror-timeout={{ $values.mirrors.timeout }}
- --quota-retained={{ int $values.quotas.retained }}
- --quota-retained-size={{ $values.quotas.retainedSize }}
{{- end }}
- --home-namespace={{ $values.homeNamespace }}
{{- if ne .part "manager" }}
- {{ printf "--external-url=%s" (include "forgeplane.externalURL" .root) | quote }}
{{- with $values.kubernetesURL }}
- {{ printf "--kubernetes-url=%s" . | quote }}
{{- end }}
- --runtime-dir=/tmp/forgeplane/run
- --rate-limit-authenticated={{ int $values.rateLimit.authenticated }}
- --rate-limit-unauthenticated={{ int $values.rateLimit.unauthenticated }}
- --rate-limit-git-authenticated={{ int $values.rateLimit.gitAuthenticated }}
- --rate-limit-git-unauthenticated={{ int $values.rateLimit.gitUnauthenticated }}
- --rate-limit-failed-sign-ins={{ int $values.rateLimit.failedSignIns }}
{{- range $name, $number := $values.slots.number }}
- --slots={{ $name }}={{ int $number }}
{{- end }}
- --request-memory-total={{ $values.limits.requestMemoryTotal }}
- --upload-disk-total={{ $values.limits.uploadDiskTotal }}
- --max-connections-per-address={{ int $values.limits.connectionsPerAddress }}
- --slots-per-caller={{ int $values.slots.perCaller }}
- --slots-reserved={{ int $values.slots.reserved }}
- --quota-projects={{ int $values.quotas.projects }}
- --quota-groups={{ int $values.quotas.groups }}
- --quota-tokens={{ int $values.quotas.tokens }}
- --quota-settings={{ int $values.quotas.settings }}
{{- range $name, $on := $values.features }}
- --feature={{ $name }}={{ $on }}
{{- end }}
{{- with $values.trustedProxies }}
- {{ printf "--trusted-proxies=%s" (join "," .) | quote }}
{{- end }}
{{- end }}
{{- if $values.metrics.enabled }}
- --metrics-address=:9090
{{- end }}
{{- if $values.verbose }}
- --verbose
{{- end }}
{{- range (index $values .part).extraArgs }}
- {{ quote . }}
{{- end }}
{{- end }}
