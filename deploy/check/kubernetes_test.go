package check

import (
	"path"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// manifests are what kubectl would be given, by kind.
type manifests struct {
	Deployments []appsv1.Deployment
	Jobs        []batchv1.Job
	ConfigMaps  []corev1.ConfigMap
	Services    []corev1.Service
	Budgets     []policyv1.PodDisruptionBudget
	Scalers     []autoscalingv2.HorizontalPodAutoscaler
	Ingresses   []networkingv1.Ingress
}

// read builds a folder as `kubectl apply -k` does, and decodes each object strictly: a field that Kubernetes does not know
// fails.
func read(t *testing.T, folder string) manifests {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatal(err)
	}
	var m manifests
	for _, object := range built.Resources() {
		text, err := object.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		switch kind := object.GetKind(); kind {
		case "Deployment":
			m.Deployments = append(m.Deployments, strict[appsv1.Deployment](t, text))
		case "Job":
			m.Jobs = append(m.Jobs, strict[batchv1.Job](t, text))
		case "ConfigMap":
			m.ConfigMaps = append(m.ConfigMaps, strict[corev1.ConfigMap](t, text))
		case "Service":
			m.Services = append(m.Services, strict[corev1.Service](t, text))
		case "PodDisruptionBudget":
			m.Budgets = append(m.Budgets, strict[policyv1.PodDisruptionBudget](t, text))
		case "HorizontalPodAutoscaler":
			m.Scalers = append(m.Scalers, strict[autoscalingv2.HorizontalPodAutoscaler](t, text))
		case "Ingress":
			m.Ingresses = append(m.Ingresses, strict[networkingv1.Ingress](t, text))
		case "Namespace":
			strict[corev1.Namespace](t, text)
		default:
			t.Errorf("there is a %s that no test looks at", kind)
		}
	}
	return m
}

func strict[T any](t *testing.T, text []byte) T {
	t.Helper()
	var object T
	if err := yaml.UnmarshalStrict(text, &object); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
	return object
}

func TestTheManifestsAreWhatKubernetesTakes(t *testing.T) {
	t.Parallel()
	m := read(t, "../kubernetes")
	if len(m.Deployments) != 2 || len(m.Jobs) != 1 || len(m.Services) != 1 || len(m.Budgets) != 2 || len(m.Scalers) != 1 || len(m.Ingresses) != 1 {
		t.Fatalf("there are %d deployments, %d jobs, %d services, %d budgets, %d scalers and %d ingresses",
			len(m.Deployments), len(m.Jobs), len(m.Services), len(m.Budgets), len(m.Scalers), len(m.Ingresses))
	}
}

func TestEachPodRunsWithoutRightsAndEndsAfterItsDrain(t *testing.T) {
	t.Parallel()
	m := read(t, "../kubernetes")
	pods := map[string]corev1.PodSpec{"sales": m.Jobs[0].Spec.Template.Spec}
	for _, d := range m.Deployments {
		pods[d.Name] = d.Spec.Template.Spec
		if !matches(d.Spec.Selector.MatchLabels, d.Spec.Template.Labels) {
			t.Errorf("%s does not select its own pods", d.Name)
		}
	}
	for name, pod := range pods {
		if pod.SecurityContext == nil || pod.SecurityContext.RunAsNonRoot == nil || !*pod.SecurityContext.RunAsNonRoot {
			t.Errorf("%s may run as root", name)
		}
		if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
			t.Errorf("%s is given a token of the cluster", name)
		}
		for _, c := range pod.Containers {
			s := c.SecurityContext
			if s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation {
				t.Errorf("%s may write to its image, or gain rights", name)
			}
			if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() {
				t.Errorf("%s has no bounds", name)
			}
			if c.Image != "registry.example/sluice:latest" {
				t.Errorf("%s runs %s", name, c.Image)
			}
			for _, env := range c.Env {
				if strings.Contains(strings.ToLower(env.Name), "secret") || strings.Contains(env.Name, "TOKEN") {
					t.Errorf("%s has %s as a variable, where anybody who may describe it reads it", name, env.Name)
				}
			}
		}
	}
	serve := pods["serve"]
	if serve.TerminationGracePeriodSeconds == nil || *serve.TerminationGracePeriodSeconds < 60+5+15 {
		t.Error("a node is killed before its shoppers have moved: the drain is 60 s, after 5 s of waiting")
	}
	for _, config := range m.ConfigMaps {
		if drain, ok := config.Data["SLUICE_DRAIN"]; ok && drain != "60s" {
			t.Errorf("the drain is %s", drain)
		}
	}
}

func TestEveryPartOfTheManifestsFindsTheOthers(t *testing.T) {
	t.Parallel()
	m := read(t, "../kubernetes")
	serve := m.Deployments[slices.IndexFunc(m.Deployments, func(d appsv1.Deployment) bool { return d.Name == "serve" })]
	labels := serve.Spec.Template.Labels
	if !matches(m.Services[0].Spec.Selector, labels) {
		t.Error("the service finds no node")
	}
	if backend := m.Ingresses[0].Spec.Rules[0].HTTP.Paths[0].Backend.Service; backend.Name != m.Services[0].Name || backend.Port.Name != m.Services[0].Spec.Ports[0].Name {
		t.Errorf("the ingress leads to %v", backend)
	}
	if m.Scalers[0].Spec.ScaleTargetRef.Name != "serve" || *m.Scalers[0].Spec.MinReplicas < 2 {
		t.Error("the nodes are not scaled, or may be down to one")
	}
	var maps []string
	for _, config := range m.ConfigMaps {
		maps = append(maps, config.Name)
	}
	for _, d := range m.Deployments {
		for _, from := range d.Spec.Template.Spec.Containers[0].EnvFrom {
			if !slices.Contains(maps, from.ConfigMapRef.Name) {
				t.Errorf("%s reads the config map %s, which is not there", d.Name, from.ConfigMapRef.Name)
			}
		}
	}
	job := m.Jobs[0].Spec.Template.Spec
	for _, volume := range job.Volumes {
		if volume.ConfigMap != nil && !slices.Contains(maps, volume.ConfigMap.Name) {
			t.Errorf("the sales are in %s, which is not there", volume.ConfigMap.Name)
		}
	}
	for _, config := range m.ConfigMaps {
		for file := range config.Data {
			if strings.HasSuffix(file, ".yaml") && !slices.Contains(job.Containers[0].Args, path.Join("/sales", file)) {
				t.Errorf("nobody applies %s", file)
			}
		}
	}
}

func matches(selector, labels map[string]string) bool {
	for name, value := range selector {
		if labels[name] != value {
			return false
		}
	}
	return len(selector) > 0
}
