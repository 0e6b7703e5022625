{{/* The name of the objects of the first administrator. */}}
{{- define "forgeplane.admin" -}}
{{ .Values.admin.username | lower | replace "_" "-" | replace "." "-" }}
{{- end }}

{{/* "true" if the cluster has an administrator. Outside of a cluster, as in helm template, it is empty. */}}
{{- define "forgeplane.hasAdministrator" -}}
{{- if .Capabilities.APIVersions.Has "forgeplane.dev/v1alpha1/User" }}
{{- range dig "items" list (lookup "forgeplane.dev/v1alpha1" "User" "" "") }}
{{- if dig "spec" "admin" false . }}true{{ end }}
{{- end }}
{{- end }}
{{- end }}

{{/* The shards. */}}
{{- define "forgeplane.shards" -}}
{{- range prepend .Values.shards (merge (dict "name" "default") .Values.repositories) }}
---
apiVersion: forgeplane.dev/v1alpha1
kind: RepositoryStorage
metadata:
  name: {{ .name | quote }}
spec:
  path: /var/lib/forgeplane/{{ if eq .name "default" }}repositories{{ else }}shards/{{ .name }}{{ end }}
  weight: {{ hasKey . "weight" | ternary .weight 100 }}
{{- end }}
{{- end }}

{{/* The first administrator. */}}
{{- define "forgeplane.administrator" -}}
apiVersion: forgeplane.dev/v1alpha1
kind: User
metadata:
  name: {{ include "forgeplane.admin" . | quote }}
spec:
  username: {{ .Values.admin.username | quote }}
  name: {{ .Values.admin.name | quote }}
  email: {{ .Values.admin.email | quote }}
  admin: true
---
apiVersion: forgeplane.dev/v1alpha1
kind: AccessToken
metadata:
  name: {{ include "forgeplane.admin" . | quote }}
spec:
  userRef:
    name: {{ include "forgeplane.admin" . | quote }}
  description: First steps
  scopes: [api]
  secretRef:
    name: {{ .Values.admin.tokenSecret | quote }}
{{- end }}

{{/* What the pods of Jobs and tests have in common. */}}
{{- define "forgeplane.jobPod" -}}
{{- with include "forgeplane.pullSecrets" . }}
{{- trim . }}
{{- end }}
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* What their containers have in common. */}}
{{- define "forgeplane.jobContainer" -}}
image: {{ include "forgeplane.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
command: [forgeplane]
securityContext:
  {{- include "forgeplane.containerSecurity" . | nindent 2 }}
{{- end }}
