{{/* The parameters of one installation, checked. The manifests are those of `berth install`, which a test holds. */}}

{{- define "berth.check" -}}
{{- $hub := eq .Values.role "hub" -}}
{{- $_ := required "remote: give the address of the fleet's repository, as pods reach it: https://host/path" .Values.remote -}}
{{- $_ := required "image.repository: name an image with berth in it; a release has one, to be pushed to a registry of yours" .Values.image.repository -}}
{{- range $name := $hub | ternary (list "cluster" "kinds" "clusterRole" "allowEscalation" "tenantServiceAccount" "overridesFrom" "clusterProperties" "statusPost" "statusKeySecret" "applier" "applierObject" "applierKubeconfigSecret") (list "name" "sourceRemote" "sourceSecret" "source" "events" "standby" "signingSecret" "webhookSecret" "statusSecret" "notifySecret" "publish" "artifactSigningSecret" "publishDecisions" "decisionKinds" "decisionsNamespace" "publishProfiles" "profilesNamespace") -}}
{{- if get $.Values $name -}}{{- fail (printf "%s: it has no effect with the role %s; leave it out" $name $.Values.role) -}}{{- end -}}
{{- end -}}
{{- if and (not $hub) (not .Values.cluster) -}}{{- fail "cluster: name the member's cluster in the fleet" -}}{{- end -}}
{{- if and (not $hub) (not .Values.kinds) (not .Values.clusterRole) -}}{{- fail "kinds: name the kinds that the member may write, such as [configmaps, deployments.apps], or a clusterRole" -}}{{- end -}}
{{- if and .Values.clusterRole (or .Values.kinds .Values.allowEscalation .Values.tenantServiceAccount) -}}{{- fail "clusterRole: leave out kinds, allowEscalation and tenantServiceAccount beside it" -}}{{- end -}}
{{- if and .Values.allowEscalation .Values.tenantServiceAccount -}}{{- fail "allowEscalation: leave it out beside tenantServiceAccount" -}}{{- end -}}
{{- if or (eq .Release.Namespace "default") (hasPrefix "kube-" .Release.Namespace) -}}{{- fail "the namespace belongs to others: install into one for berth alone, --namespace berth-hub --create-namespace" -}}{{- end -}}
{{- $registry := include "berth.registry" . -}}
{{- if and $hub (hasPrefix "oci://" .Values.remote) -}}{{- fail "remote: a registry cannot be the remote of a hub; name it as publish" -}}{{- end -}}
{{- if and (not $registry) (or .Values.registrySecret .Values.registryHttp) -}}{{- fail "registrySecret, registryHttp: no registry is named; publish names that of a hub, remote that of a member" -}}{{- end -}}
{{- if and .Values.registryCa (or .Values.registryHttp (not .Values.registrySecret)) -}}{{- fail "registryCa: it needs registrySecret, and no registryHttp" -}}{{- end -}}
{{- if and .Values.artifactSigningSecret (not .Values.publish) -}}{{- fail "artifactSigningSecret: it has no effect without publish" -}}{{- end -}}
{{- if and (not .Values.publishDecisions) (or .Values.decisionKinds .Values.decisionsNamespace) -}}{{- fail "decisionKinds, decisionsNamespace: they have no effect without publishDecisions" -}}{{- end -}}
{{- if and .Values.profilesNamespace (not .Values.publishDecisions) (not .Values.publishProfiles) -}}{{- fail "profilesNamespace: it has no effect without publishProfiles or publishDecisions" -}}{{- end -}}
{{- if and (not .Values.applier) (or .Values.applierObject .Values.applierKubeconfigSecret) -}}{{- fail "applierObject, applierKubeconfigSecret: they have no effect where berth applies the folder" -}}{{- end -}}
{{- if and .Values.applier (or .Values.allowEscalation .Values.tenantServiceAccount .Values.overridesFrom) -}}{{- fail "applier: leave out allowEscalation, tenantServiceAccount and overridesFrom beside it" -}}{{- end -}}
{{- $ssh := include "berth.ssh" . -}}
{{- if and .Values.statusKeySecret (not .Values.statusPost) -}}{{- fail "statusKeySecret: it has no effect without statusPost" -}}{{- end -}}
{{- if and .Values.statusPost (not $ssh) (not .Values.statusKeySecret) -}}{{- fail "statusKeySecret: name the Secret with the key that signs statuses" -}}{{- end -}}
{{- if and (hasPrefix "oci://" .Values.remote) (or .Values.gitCa .Values.knownHosts) -}}{{- fail "gitCa, knownHosts: they are for Git, and remote is a container registry" -}}{{- end -}}
{{- $sourceSsh := include "berth.sourceSsh" . -}}
{{- if and .Values.knownHosts (not $ssh) (not $sourceSsh) -}}{{- fail "knownHosts: it is for ssh, and remote is not an address of ssh" -}}{{- end -}}
{{- if and $sourceSsh (not $ssh) (not .Values.knownHosts) -}}{{- fail "knownHosts: give the host of sourceRemote, which is reached by ssh" -}}{{- end -}}
{{- if and $sourceSsh (not .Values.sourceSecret) -}}{{- fail "sourceSecret: ssh needs a key; name its Secret" -}}{{- end -}}
{{- if and .Values.sourceSecret (not .Values.sourceRemote) -}}{{- fail "sourceSecret: it has no effect without sourceRemote" -}}{{- end -}}
{{- if and .Values.otlpHeadersSecret (not (hasPrefix "https://" .Values.otlpEndpoint)) -}}{{- fail "otlpHeadersSecret: otlpEndpoint needs https where headers go along" -}}{{- end -}}
{{- if and $ssh (not .Values.gitSecret) -}}{{- fail "gitSecret: ssh needs a key; name its Secret" -}}{{- end -}}
{{- if hasKey .Values.env "BERTH_TOKEN" -}}{{- fail "env: BERTH_TOKEN is a credential; put it into the Secret that gitSecret names" -}}{{- end -}}
{{- if hasKey .Values.env "OTEL_EXPORTER_OTLP_HEADERS" -}}{{- fail "env: OTEL_EXPORTER_OTLP_HEADERS is a credential; put it into the Secret that otlpHeadersSecret names" -}}{{- end -}}
{{- $own := include "berth.ownEnv" . | fromJson -}}
{{- range $name, $_ := .Values.env -}}{{- if hasKey $own $name -}}{{- fail (printf "env: other values set %s already" $name) -}}{{- end -}}{{- end -}}
{{- end -}}

{{- define "berth.fleet" -}}{{ .Values.fleet | default "fleet" }}{{- end -}}

{{- define "berth.name" -}}
{{- if eq .Values.role "hub" -}}{{ .Values.name | default "berth-hub" }}{{- else -}}berth-{{ include "berth.fleet" . }}{{- end -}}
{{- end -}}

{{- define "berth.labels" -}}
app.kubernetes.io/name: {{ if eq .Values.role "hub" }}berth-run{{ else }}berth-sync{{ end }}
app.kubernetes.io/instance: {{ include "berth.name" . | toJson }}
{{- end -}}

{{- define "berth.metadata" -}}
name: {{ include "berth.name" . | toJson }}
namespace: {{ .Release.Namespace | toJson }}
labels:
  {{- include "berth.labels" . | nindent 2 }}
{{- end -}}

{{- define "berth.subjects" -}}
- kind: ServiceAccount
  name: {{ include "berth.name" . | toJson }}
  namespace: {{ .Release.Namespace | toJson }}
{{- end -}}

{{/* Not empty if the repository is reached by ssh. */}}
{{- define "berth.ssh" -}}
{{- if not (or (hasPrefix "https://" .Values.remote) (hasPrefix "oci://" .Values.remote)) -}}yes{{- end -}}
{{- end -}}

{{/* The Secret with the credentials for the repository. A registry has its own. */}}
{{- define "berth.gitSecret" -}}
{{- if not (hasPrefix "oci://" .Values.remote) -}}{{- .Values.gitSecret -}}{{- end -}}
{{- end -}}

{{/* The address of the container registry, if there is one. */}}
{{- define "berth.registry" -}}
{{- if eq .Values.role "hub" -}}{{- .Values.publish -}}{{- else if hasPrefix "oci://" .Values.remote -}}{{- .Values.remote -}}{{- end -}}
{{- end -}}

{{/* Not empty if the process writes objects for others. */}}
{{- define "berth.objects" -}}
{{- if or .Values.publishDecisions .Values.publishProfiles -}}yes{{- end -}}
{{- end -}}

{{/* Not empty if the source has a repository of its own that is reached by ssh. */}}
{{- define "berth.sourceSsh" -}}
{{- with .Values.sourceRemote -}}{{- if not (hasPrefix "https://" .) -}}yes{{- end -}}{{- end -}}
{{- end -}}

{{/* Not empty if the process talks to the API server of its cluster. */}}
{{- define "berth.asksApiServer" -}}
{{- if or (eq .Values.role "member") .Values.events .Values.standby (include "berth.objects" .) -}}yes{{- end -}}
{{- end -}}

{{/* The port of an address, which is given. */}}
{{- define "berth.portOf" -}}
{{- $given := "" -}}
{{- if contains "://" . -}}
{{- $given = regexReplaceAll "^[a-z]+://([^/]*).*$" . "${1}" | regexFind ":[0-9]+$" | trimPrefix ":" -}}
{{- end -}}
{{- $given | default (or (hasPrefix "https://" .) (hasPrefix "oci://" .) | ternary "443" (hasPrefix "http://" . | ternary "80" "22")) -}}
{{- end -}}

{{/* The files of the ConfigMap, as JSON. */}}
{{- define "berth.trust" -}}
{{- $files := dict -}}
{{- with .Values.allowedSigners -}}{{- $_ := set $files "allowed_signers" . -}}{{- end -}}
{{- with .Values.knownHosts -}}{{- $_ := set $files "known_hosts" . -}}{{- end -}}
{{- $files | toJson -}}
{{- end -}}

{{/* The Secrets beside the one for the repository, as JSON. */}}
{{- define "berth.ownSecrets" -}}
{{- $bySsh := include "berth.sourceSsh" . -}}
{{- $all := list
  (dict "secret" .Values.sourceSecret "volume" "source" "key" ($bySsh | empty | ternary "token" "key") "variable" ($bySsh | empty | ternary "BERTH_SOURCE_TOKEN_FILE" "BERTH_SOURCE_SSH_KEY"))
  (dict "secret" .Values.signingSecret "volume" "signing" "key" "key" "variable" "BERTH_SIGNING_KEY")
  (dict "secret" .Values.webhookSecret "volume" "webhook" "key" "secret" "variable" "BERTH_WEBHOOK_SECRET_FILE")
  (dict "secret" .Values.statusSecret "volume" "status" "key" "signers" "variable" "BERTH_STATUS_SIGNERS")
  (dict "secret" .Values.notifySecret "volume" "notify" "key" "address" "variable" "BERTH_NOTIFY_FILE")
  (dict "secret" .Values.artifactSigningSecret "volume" "artifacts" "key" "key" "variable" "BERTH_ARTIFACT_SIGNING_KEY")
  (dict "secret" .Values.statusKeySecret "volume" "status" "key" "key" "variable" "BERTH_STATUS_KEY")
  (dict "secret" .Values.applierKubeconfigSecret "volume" "applier" "key" "kubeconfig" "variable" "BERTH_APPLIER_KUBECONFIG")
  (dict "secret" .Values.registrySecret "volume" "registry" "key" ".dockerconfigjson" "variable" "BERTH_REGISTRY_AUTH")
  (dict "secret" .Values.otlpHeadersSecret "volume" "otlp" "key" "headers" "variable" "BERTH_OTLP_HEADERS_FILE") -}}
{{- $named := list -}}
{{- range $all -}}{{- if .secret -}}{{- $named = append $named . -}}{{- end -}}{{- end -}}
{{- $named | toJson -}}
{{- end -}}

{{/* The variables that other values set, as JSON. */}}
{{- define "berth.ownEnv" -}}
{{- $set := dict "BERTH_REMOTE" .Values.remote "BERTH_METRICS" "0.0.0.0:9090" "XDG_CACHE_HOME" "/var/cache" -}}
{{- if .Values.registryCa -}}{{- $_ := set $set "BERTH_REGISTRY_CA_FILE" "/etc/berth/registry/ca.crt" -}}{{- end -}}
{{- if .Values.registryHttp -}}{{- $_ := set $set "BERTH_REGISTRY_HTTP" "true" -}}{{- end -}}
{{- if include "berth.gitSecret" . -}}
{{- if include "berth.ssh" . -}}
{{- $_ := set $set "BERTH_SSH_KEY" "/etc/berth/git/key" -}}
{{- $_ := set $set "BERTH_KNOWN_HOSTS" "/etc/berth/git/known_hosts" -}}
{{- else -}}
{{- $_ := set $set "BERTH_TOKEN_FILE" "/etc/berth/git/token" -}}
{{- end -}}
{{- if .Values.gitCa -}}{{- $_ := set $set "BERTH_CA_FILE" "/etc/berth/git/ca.crt" -}}{{- end -}}
{{- end -}}
{{- if .Values.knownHosts -}}{{- $_ := set $set "BERTH_KNOWN_HOSTS" "/etc/berth/trust/known_hosts" -}}{{- end -}}
{{- with .Values.otlpEndpoint -}}{{- $_ := set $set "OTEL_EXPORTER_OTLP_ENDPOINT" . -}}{{- end -}}
{{- range include "berth.ownSecrets" . | fromJsonArray -}}{{- $_ := set $set .variable (printf "/etc/berth/%s/%s" .volume .key) -}}{{- end -}}
{{- if .Values.allowedSigners -}}{{- $_ := set $set "BERTH_ALLOWED_SIGNERS" "/etc/berth/trust/allowed_signers" -}}{{- end -}}
{{- if eq .Values.role "hub" -}}
{{- with .Values.source -}}{{- $_ := set $set "BERTH_SOURCE" . -}}{{- end -}}
{{- with .Values.fleet -}}{{- $_ := set $set "BERTH_FLEET" . -}}{{- end -}}
{{- if .Values.events -}}{{- $_ := set $set "BERTH_EVENTS" (printf "deployment/%s/%s" .Release.Namespace (include "berth.name" .)) -}}{{- end -}}
{{- if .Values.standby -}}{{- $_ := set $set "BERTH_STANDBY" (printf "lease/%s/%s" .Release.Namespace (include "berth.name" .)) -}}{{- end -}}
{{- if .Values.webhookSecret -}}{{- $_ := set $set "BERTH_WEBHOOK" "0.0.0.0:8080" -}}{{- end -}}
{{- if .Values.statusSecret -}}{{- $_ := set $set "BERTH_STATUS_LISTEN" "0.0.0.0:8081" -}}{{- end -}}
{{- with .Values.sourceRemote -}}{{- $_ := set $set "BERTH_SOURCE_REMOTE" . -}}{{- end -}}
{{- with .Values.publish -}}{{- $_ := set $set "BERTH_PUBLISH" . -}}{{- end -}}
{{- with .Values.publishDecisions -}}{{- $_ := set $set "BERTH_PUBLISH_DECISIONS" . -}}{{- end -}}
{{- if eq (len .Values.decisionKinds) 1 -}}{{- $_ := set $set "BERTH_DECISION_KINDS" (first .Values.decisionKinds) -}}{{- end -}}
{{- with .Values.decisionsNamespace -}}{{- $_ := set $set "BERTH_DECISIONS_NAMESPACE" . -}}{{- end -}}
{{- with .Values.publishProfiles -}}{{- $_ := set $set "BERTH_PUBLISH_PROFILES" . -}}{{- end -}}
{{- with .Values.profilesNamespace -}}{{- $_ := set $set "BERTH_PROFILES_NAMESPACE" . -}}{{- end -}}
{{- else -}}
{{- $_ := set $set "BERTH_CLUSTER" .Values.cluster -}}
{{- $_ := set $set "BERTH_FLEET" (include "berth.fleet" .) -}}
{{- $_ := set $set "BERTH_NAMESPACE" .Release.Namespace -}}
{{- $_ := set $set "BERTH_TARGET" "kube" -}}
{{- with .Values.tenantServiceAccount -}}{{- $_ := set $set "BERTH_TENANT_SERVICE_ACCOUNT" . -}}{{- end -}}
{{- with .Values.overridesFrom -}}{{- $_ := set $set "BERTH_OVERRIDES_FROM" (join "," .) -}}{{- end -}}
{{- if .Values.clusterProperties -}}{{- $_ := set $set "BERTH_CLUSTER_PROPERTIES" "true" -}}{{- end -}}
{{- with .Values.statusPost -}}{{- $_ := set $set "BERTH_STATUS_POST" . -}}{{- end -}}
{{- with .Values.applier -}}{{- $_ := set $set "BERTH_APPLIER" . -}}{{- end -}}
{{- with .Values.applierObject -}}{{- $_ := set $set "BERTH_APPLIER_OBJECT" . -}}{{- end -}}
{{- end -}}
{{- $set | toJson -}}
{{- end -}}
