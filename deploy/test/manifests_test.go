// Package deploy_test decodes every manifest strictly into the types of Kubernetes, as the API server would with strict
// validation, and checks what the documentation promises about them.
package deploy_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// kinds are the types of the manifests; nil = not of Kubernetes itself, only its YAML is checked.
var kinds = map[string]func() any{
	"apps/v1 Deployment":                      func() any { return new(appsv1.Deployment) },
	"v1 Service":                              func() any { return new(corev1.Service) },
	"v1 ServiceAccount":                       func() any { return new(corev1.ServiceAccount) },
	"v1 ConfigMap":                            func() any { return new(corev1.ConfigMap) },
	"v1 Secret":                               func() any { return new(corev1.Secret) },
	"policy/v1 PodDisruptionBudget":           func() any { return new(policyv1.PodDisruptionBudget) },
	"autoscaling/v2 HorizontalPodAutoscaler":  func() any { return new(autoscalingv2.HorizontalPodAutoscaler) },
	"networking.k8s.io/v1 NetworkPolicy":      func() any { return new(networkingv1.NetworkPolicy) },
	"monitoring.coreos.com/v1 ServiceMonitor": nil,
}

// check decodes a stream of manifests strictly and checks them. It returns how many there are of each kind.
func check(t *testing.T, stream []byte) map[string]int {
	t.Helper()
	found := map[string]int{}
	for _, text := range strings.Split("\n"+string(stream), "\n---") {
		if strings.TrimSpace(text) == "" {
			continue
		}
		var head struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal([]byte(text), &head); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		kind := head.APIVersion + " " + head.Kind
		found[head.Kind]++
		into, known := kinds[kind]
		if !known {
			t.Errorf("kind %q has no type in this test", kind)
			continue
		}
		if into == nil {
			continue
		}
		object := into()
		if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
			t.Errorf("%s: %v\n%s", kind, err, text)
		}
		switch o := object.(type) {
		case *appsv1.Deployment:
			checkPod(t, &o.Spec.Template.Spec)
		case *corev1.ConfigMap:
			checkConfig(t, o.Data["dpwatch.yaml"])
		}
	}
	return found
}

// checkPod checks the container of dpwatch in a pod: rights, probes, and enough time to end.
func checkPod(t *testing.T, pod *corev1.PodSpec) {
	t.Helper()
	checked := 0
	for _, c := range append(pod.InitContainers, pod.Containers...) {
		if !strings.Contains(c.Image, "dpwatch") {
			continue
		}
		checked++
		s := c.SecurityContext
		nonRoot := s != nil && s.RunAsNonRoot != nil && *s.RunAsNonRoot || pod.SecurityContext != nil && pod.SecurityContext.RunAsNonRoot != nil && *pod.SecurityContext.RunAsNonRoot
		if !nonRoot || s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation ||
			s.Capabilities == nil || fmt.Sprint(s.Capabilities.Drop) != "[ALL]" {
			t.Errorf("container %s has more rights than it needs: %+v", c.Name, s)
		}
		if c.LivenessProbe == nil || c.LivenessProbe.HTTPGet == nil || c.LivenessProbe.HTTPGet.Path != "/livez" {
			t.Errorf("container %s: the liveness probe must be /livez, which depends on nothing", c.Name)
		}
		if c.Args[0] == "run" {
			grace := pod.TerminationGracePeriodSeconds
			if p := c.Lifecycle; p == nil || p.PreStop == nil || p.PreStop.Sleep == nil || grace == nil || *grace < p.PreStop.Sleep.Seconds+30+10 {
				t.Errorf("container %s: the time to end is shorter than preStop, the drain and the last writes", c.Name)
			}
		}
		if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() {
			t.Errorf("container %s: resources %+v", c.Name, c.Resources)
		}
	}
	if checked != 1 {
		t.Errorf("%d containers of dpwatch in a pod", checked)
	}
}

// checkConfig lets the program check a configuration of a manifest.
func checkConfig(t *testing.T, text string) {
	t.Helper()
	program, err := filepath.Abs("../../bin/dpwatch")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%v: build it with make build", err)
	}
	dir := t.TempDir()
	for name, content := range map[string]string{
		"shadow-dsn": "postgres://replay@shadow:5432/shadow", "ledger-dsn": "postgres://ledger@ledger:5432/ledger",
		"replay_password": "replay", "ledger_password": "ledger",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "dpwatch.yaml")
	if err := os.WriteFile(path, []byte(strings.NewReplacer("/etc/dpwatch-secret", dir, "/run/secrets", dir).Replace(text)), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "config", "check", "--config", path)
	cmd.Env = append(os.Environ(), "UPSTREAM=engine:5432")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s\n%s", err, out, text)
	}
}

func TestKustomize(t *testing.T) {
	for dir, want := range map[string]map[string]int{
		"../kustomize/standalone": {"Deployment": 2, "HorizontalPodAutoscaler": 1, "PodDisruptionBudget": 1, "NetworkPolicy": 1, "ConfigMap": 1},
		"../kustomize/example":    {"Deployment": 1, "Service": 1, "Secret": 1, "ConfigMap": 1},
	} {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
			if err != nil {
				t.Fatal(err)
			}
			stream, err := built.AsYaml()
			if err != nil {
				t.Fatal(err)
			}
			found := check(t, stream)
			for kind, n := range want {
				if found[kind] != n {
					t.Errorf("%d of %s, want %d", found[kind], kind, n)
				}
			}
			if sidecar := bytes.Contains(stream, []byte("restartPolicy: Always")); sidecar != strings.HasSuffix(dir, "example") {
				t.Errorf("a native sidecar: %t", sidecar)
			}
		})
	}
}

func TestHelm(t *testing.T) {
	const dir = "../helm/dpwatch"
	lint := action.NewLint()
	lint.Strict = true
	for _, m := range lint.Run([]string{dir}, nil).Messages {
		if m.Severity >= support.WarningSev {
			t.Error(m)
		}
	}
	chart, err := loader.LoadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		values map[string]any
		want   map[string]int
	}{
		"defaults": {nil, map[string]int{"Deployment": 2, "PodDisruptionBudget": 1, "NetworkPolicy": 1, "ConfigMap": 1, "HorizontalPodAutoscaler": 0, "ServiceMonitor": 0}},
		"everything": {map[string]any{
			"image":          map[string]any{"digest": "sha256:" + strings.Repeat("0", 64)},
			"workers":        map[string]any{"autoscaling": map[string]any{"enabled": true}},
			"serviceMonitor": map[string]any{"enabled": true}, "tolerations": []any{map[string]any{"key": "a", "operator": "Exists"}},
			"nodeSelector": map[string]any{"a": "b"}, "imagePullSecrets": []any{map[string]any{"name": "pull"}},
		}, map[string]int{"HorizontalPodAutoscaler": 1, "ServiceMonitor": 1}},
		"one proxy": {map[string]any{
			"proxy": map[string]any{"replicas": 1, "workers": 2}, "workers": map[string]any{"replicas": 0}, "networkPolicy": map[string]any{"enabled": false},
		}, map[string]int{"PodDisruptionBudget": 0, "NetworkPolicy": 0}},
	} {
		t.Run(name, func(t *testing.T) {
			values, err := chartutil.ToRenderValues(chart, tc.values, chartutil.ReleaseOptions{Name: "audit", Namespace: "privacy"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			files, err := engine.Render(chart, values)
			if err != nil {
				t.Fatal(err)
			}
			var stream strings.Builder
			for file, text := range files {
				if strings.HasSuffix(file, ".yaml") {
					stream.WriteString("\n---\n" + text)
				}
			}
			found := check(t, []byte(stream.String()))
			for kind, n := range tc.want {
				if found[kind] != n {
					t.Errorf("%d of %s, want %d", found[kind], kind, n)
				}
			}
		})
	}
	if _, err := chartutil.ToRenderValues(chart, map[string]any{"proxy": map[string]any{"replica": 1}}, chartutil.ReleaseOptions{}, nil); err == nil {
		t.Error("a value that does not exist is accepted")
	}
}
