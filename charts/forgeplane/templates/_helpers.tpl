{{/* The labels of every object. */}}
{{- define "forgeplane.labels" -}}
{{- with .Values.labels }}
{{- toYaml . }}
{{ end }}
{{- include "forgeplane.selector" . }}
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
{{- with .Values.image }}
{{- .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{/* Secrets with which the image is pulled. */}}
{{- define "forgeplane.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{/* What no container may do. */}}
{{- define "forgeplane.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "forgeplane.externalURL" -}}
{{- $port := ternary "" (printf ":%v" .Values.service.port) (eq (int .Values.service.port) 80) -}}
{{ .Values.externalURL | default (printf "http://forgeplane.%s.svc%s" .Release.Namespace $port) }}
{{- end }}

{{/* Whether the activity database is SQLite. */}}
{{- define "forgeplane.sqlite" -}}
{{ if not .Values.activityDatabase.secret.name }}true{{ end }}
{{- end }}

{{/* The host of clients from outside and, if it is another one, that of the container registry. */}}
{{- define "forgeplane.hosts" -}}
{{- $urls := list .Values.externalURL (.Values.registry.enabled | ternary .Values.registry.url "") | compact }}
{{- $hosts := list }}
{{- range $urls }}
{{- $hosts = append $hosts (urlParse . | dig "host" "" | splitList ":" | first) }}
{{- end }}
{{- uniq $hosts | toYaml }}
{{- end }}

{{/* The processes, each of which has a Deployment. */}}
{{- define "forgeplane.parts" -}}
{{- if eq .Values.mode "all" }}
- all
{{- else }}
- manager
- apiserver
{{- end }}
{{- if and .Values.registry.enabled .Values.registry.separate.enabled }}
- registry
{{- end }}
{{- end }}

{{/* The values of a process alone: .root is the chart's own scope, .part what the process runs. */}}
{{- define "forgeplane.own" -}}
{{- if eq .part "registry" }}
{{- toYaml .root.Values.registry.separate }}
{{- else }}
{{- toYaml (merge (dict) (index .root.Values .part) (dict "replicas" (eq .part "all" | ternary 1 2))) }}
{{- end }}
{{- end }}


{{/* The Secret with the certificate of the servers, unless Forgeplane issues it. */}}
{{- define "forgeplane.tlsSecret" -}}
{{ .Values.certificate.secretName | default "forgeplane-apiserver-cert" }}
{{- end }}

{{/* The whole seconds of a duration such as 1h30m. */}}
{{- define "forgeplane.seconds" -}}
{{- $start := toDate "2006" "2000" }}
{{- sub (mustDateModify . $start | unixEpoch) (unixEpoch $start) }}
{{- end }}
