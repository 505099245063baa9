{{/* One operator serves a cluster: its names are fixed, so that a second release fails to install rather than quarrel. */}}
{{- define "stoker.name" -}}
stoker-operator
{{- end -}}

{{- define "stoker.selectorLabels" -}}
app.kubernetes.io/name: stoker
app.kubernetes.io/component: operator
{{- end -}}

{{- define "stoker.labels" -}}
{{ include "stoker.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/instance: {{ .Release.Name }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "stoker.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "stoker.subjects" -}}
- kind: ServiceAccount
  name: {{ include "stoker.name" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}
