{{/* The name of the claim of a volume: .name is the volume, .values its values. It is empty if the volume has no claim of its own. */}}
{{- define "forgeplane.claim" -}}
{{- if .values.existingClaim }}
{{- .values.existingClaim }}
{{- else if .values.size }}
{{- printf "forgeplane-%s" .name }}
{{- end }}
{{- end }}

{{/* A volume of a pod: .name is the volume, .values its values. */}}
{{- define "forgeplane.volume" -}}
- name: {{ .name }}
  {{- if .values.hostPath }}
  hostPath: {path: {{ .values.hostPath }}, type: Directory}
  {{- else }}
  persistentVolumeClaim: {claimName: {{ include "forgeplane.claim" . }}}
  {{- end }}
{{- end }}

{{/* What a process keeps in volumes besides repositories, by the name of the directory: .root is the chart's own scope, .part what the process runs. */}}
{{- define "forgeplane.stores" -}}
{{- $values := .root.Values -}}
{{- if include "forgeplane.sqlite" .root }}
activity: {{ toJson $values.activityDatabase }}
{{- end }}
{{- if not (or $values.blobs.url (eq .part "registry")) }}
blobs: {{ toJson $values.blobs }}
{{- end }}
{{- if and $values.registry.enabled (not $values.registry.storageSecret.name) }}
registry: {{ toJson $values.registry }}
{{- end }}
{{- end }}

{{/* The volumes of a process: .root is the chart's own scope, .part what the process runs. */}}
{{- define "forgeplane.volumes" -}}
{{- $values := .root.Values -}}
{{- $forge := ne .part "registry" -}}
{{- $stores := include "forgeplane.stores" . | fromYaml -}}
{{- $shared := $forge -}}
{{- range $stores }}{{ if not (include "forgeplane.claim" (dict "name" "" "values" .)) }}{{ $shared = true }}{{ end }}{{ end -}}
{{- if $shared }}
{{ include "forgeplane.volume" (dict "name" "repositories" "values" $values.repositories) }}
{{- end }}
{{- range $name, $store := $stores }}
{{- if include "forgeplane.claim" (dict "name" $name "values" $store) }}
{{ include "forgeplane.volume" (dict "name" $name "values" $store) }}
{{- end }}
{{- end }}
{{- if $forge }}
{{- range $values.shards }}
{{ include "forgeplane.volume" (dict "name" (printf "shard-%s" .name) "values" .) }}
{{- end }}
{{- end }}
{{- with $values.registry }}
{{- if and .enabled .storageSecret.name }}
- name: registry
  secret:
    secretName: {{ .storageSecret.name }}
    items:
      - {key: {{ .storageSecret.key }}, path: storage.yaml}
{{- end }}
{{- end }}
{{- if and (has .part (list "all" "apiserver")) (ne $values.certificate.source "Managed") }}
- name: tls
  secret: {secretName: {{ include "forgeplane.tlsSecret" .root }}}
{{- end }}
- name: tmp
  emptyDir: {}
{{- with $values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Where a process has its volumes: .root is the chart's own scope, .part what the process runs. */}}
{{- define "forgeplane.mounts" -}}
{{- $values := .root.Values -}}
{{- $forge := ne .part "registry" -}}
{{- if $forge }}
- {name: repositories, mountPath: /var/lib/forgeplane/repositories, subPath: repositories}
{{- end }}
{{- range $name, $store := include "forgeplane.stores" . | fromYaml }}
{{- if include "forgeplane.claim" (dict "name" $name "values" $store) }}
- {name: {{ $name }}, mountPath: /var/lib/forgeplane/{{ $name }}}
{{- else }}
- {name: repositories, mountPath: /var/lib/forgeplane/{{ $name }}, subPath: {{ $name }}}
{{- end }}
{{- end }}
{{- if $forge }}
{{- range $values.shards }}
- {name: shard-{{ .name }}, mountPath: /var/lib/forgeplane/shards/{{ .name }}}
{{- end }}
{{- end }}
{{- if and $values.registry.enabled $values.registry.storageSecret.name }}
- {name: registry, mountPath: /etc/forgeplane/registry}
{{- end }}
{{- if and (has .part (list "all" "apiserver")) (ne $values.certificate.source "Managed") }}
- {name: tls, mountPath: /etc/forgeplane/tls}
{{- end }}
- {name: tmp, mountPath: /tmp}
{{- with $values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}
