{{- define "dpwatch.name" -}}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{- end }}

{{- define "dpwatch.labels" -}}
app.kubernetes.io/name: dpwatch
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "dpwatch.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "dpwatch.pod" -}}
serviceAccountName: {{ include "dpwatch.name" . }}
automountServiceAccountToken: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
volumes:
  - name: config
    configMap: {name: {{ include "dpwatch.name" . }}}
  - name: secret
    secret: {secretName: {{ .Values.existingSecret }}}
  - name: state
    emptyDir: {sizeLimit: 256Mi}
  - name: run
    emptyDir: {medium: Memory, sizeLimit: 1Mi}
{{- end }}

{{- define "dpwatch.container" -}}
image: {{ include "dpwatch.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
livenessProbe:
  httpGet: {path: /livez, port: metrics}
  timeoutSeconds: 5
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: config, mountPath: /etc/dpwatch, readOnly: true}
  - {name: secret, mountPath: /etc/dpwatch-secret, readOnly: true}
  - {name: state, mountPath: /var/lib/dpwatch}
  - {name: run, mountPath: /run/dpwatch}
{{- end }}
