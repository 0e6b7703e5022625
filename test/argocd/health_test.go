package argocd_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/yaml"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/argocd"
)

var (
	root      = filepath.Join("..", "..")
	directory = argocd.Directory(root)
)

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// check returns the check of all kinds.
func check(t *testing.T) *argocd.Check {
	t.Helper()
	c, err := argocd.Read(root)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return c
}

// state is a state in which an object can be.
type state struct {
	observed   int64
	conditions []metav1.Condition
	deleting   bool
	want       argocd.Health
	// kstatus is the judgement of kstatus; empty for an object without a status, which a cluster does not have.
	kstatus status.Status
}

const generation = 2

// states are the states of an object of the given generation, by their names.
func states() map[string]state {
	ready := func(is metav1.ConditionStatus, reason, message, beside string) []metav1.Condition {
		all := []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: is, Reason: reason, Message: message}}
		if beside != "" {
			all = append(all, metav1.Condition{Type: beside, Status: metav1.ConditionTrue, Reason: reason, Message: message})
		}
		return all
	}
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	unseen := argocd.Health{"Progressing", "Forgeplane has not seen this declaration yet"}
	return map[string]state{
		"no status":  {want: unseen},
		"never seen": {observed: -1, want: unseen, kstatus: status.InProgressStatus},
		"stale generation": {
			observed: generation - 1, conditions: ready(no, v1alpha1.ReasonInvalid, "wrong", v1alpha1.ConditionStalled),
			want: unseen, kstatus: status.InProgressStatus,
		},
		"reconciling": {
			observed: generation, conditions: ready(no, v1alpha1.ReasonReferenceNotFound, "there is none", v1alpha1.ConditionReconciling),
			want: argocd.Health{"Progressing", "there is none"}, kstatus: status.InProgressStatus,
		},
		"stalled": {
			observed: generation, conditions: ready(no, v1alpha1.ReasonInvalid, "wrong", v1alpha1.ConditionStalled),
			want: argocd.Health{"Degraded", "wrong"}, kstatus: status.FailedStatus,
		},
		"ready": {
			observed: generation, conditions: ready(yes, v1alpha1.ReasonReady, "", ""),
			want: argocd.Health{"Healthy", "Ready"}, kstatus: status.CurrentStatus,
		},
		"expired": {
			observed: generation, conditions: ready(yes, v1alpha1.ReasonExpired, "it ended", ""),
			want: argocd.Health{"Healthy", "it ended"}, kstatus: status.CurrentStatus,
		},
		"suspended": {
			observed: generation, conditions: ready(yes, v1alpha1.ReasonSuspended, "nothing is done", ""),
			want: argocd.Health{"Suspended", "nothing is done"}, kstatus: status.CurrentStatus,
		},
		"deleting": {
			observed: generation, conditions: ready(yes, v1alpha1.ReasonReady, "", ""), deleting: true,
			want: argocd.Health{"Progressing", "deleting"}, kstatus: status.TerminatingStatus,
		},
		"deleting, and waiting": {
			observed: generation - 1, conditions: ready(no, v1alpha1.ReasonDeleting, "deleting: for the volume", v1alpha1.ConditionReconciling),
			deleting: true, want: argocd.Health{"Progressing", "deleting: for the volume"}, kstatus: status.TerminatingStatus,
		},
	}
}

// object returns an object of a kind in a state, as a client gets it.
func (s state) object(t *testing.T, kind v1alpha1.Object) map[string]any {
	t.Helper()
	g := NewWithT(t)
	kind.SetGeneration(generation)
	if s.deleting {
		kind.SetDeletionTimestamp(&metav1.Time{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)})
	}
	common := kind.GetCommonStatus()
	common.ObservedGeneration, common.Conditions = s.observed, s.conditions
	obj, err := runtime.DefaultUnstructuredConverter.ToUnstructured(kind)
	g.Expect(err).NotTo(HaveOccurred())
	if s.observed == 0 {
		delete(obj, "status")
	}
	return obj
}

func TestHealth_agreesWithKstatus(t *testing.T) {
	script := check(t)
	for i := range v1alpha1.Kinds() {
		for name, s := range states() {
			kind := v1alpha1.Kinds()[i]
			t.Run(reflect.TypeOf(kind).Elem().Name()+" "+name, func(t *testing.T) {
				g := NewWithT(t)
				obj := s.object(t, kind)
				g.Expect(script.Of(obj)).To(Equal(s.want))
				if s.kstatus == "" {
					return
				}
				g.Expect(script.Verify(&unstructured.Unstructured{Object: obj})).To(Equal(s.want))
				judged, err := status.Compute(&unstructured.Unstructured{Object: obj})
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(judged.Status).To(Equal(s.kstatus))
			})
		}
	}
}

func TestVerify_findsWrongCheck(t *testing.T) {
	stalled := states()["stalled"].object(t, &v1alpha1.User{})
	for name, tt := range map[string]struct{ script, want string }{
		"of another status":  {`return { status = "Healthy", message = "well" }`, "the health check says Healthy, and kstatus and the conditions mean Degraded"},
		"without a message":  {`return { status = "Degraded", message = "" }`, "the health check says Degraded without a message"},
		"without a result":   {`return nil`, "a value of the type nil instead of a table"},
		"that uses the host": {`return { status = os.getenv("HOME") }`, "running the health check"},
		"that does not end":  {`while true do end`, "context deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			checkout := t.TempDir()
			g.Expect(os.MkdirAll(argocd.Directory(checkout), 0o755)).To(Succeed())
			g.Expect(os.WriteFile(filepath.Join(argocd.Directory(checkout), "health.lua"), []byte(tt.script), 0o644)).To(Succeed())
			c, err := argocd.Read(checkout)
			g.Expect(err).NotTo(HaveOccurred())
			_, err = c.Verify(&unstructured.Unstructured{Object: stalled})
			g.Expect(err).To(MatchError(ContainSubstring(tt.want)))
		})
	}
}

func TestHealthTests_pass(t *testing.T) {
	g := NewWithT(t)
	var all struct {
		Tests []struct {
			HealthStatus argocd.Health `json:"healthStatus"`
			InputPath    string        `json:"inputPath"`
		} `json:"tests"`
	}
	g.Expect(yaml.UnmarshalStrict([]byte(read(t, directory, "health_test.yaml")), &all)).To(Succeed())
	scheme := runtime.NewScheme()
	g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	strict := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	var used []string
	for _, tt := range all.Tests {
		used = append(used, filepath.Base(tt.InputPath))
		t.Run(tt.InputPath, func(t *testing.T) {
			g := NewWithT(t)
			text := read(t, directory, tt.InputPath)
			_, _, err := strict.Decode([]byte(text), nil, nil)
			g.Expect(err).NotTo(HaveOccurred())
			var obj map[string]any
			g.Expect(yaml.Unmarshal([]byte(text), &obj)).To(Succeed())
			g.Expect(check(t).Of(obj)).To(Equal(tt.HealthStatus))
		})
	}
	entries, err := os.ReadDir(filepath.Join(directory, "testdata"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(entries).NotTo(BeEmpty())
	for _, e := range entries {
		g.Expect(slices.Contains(used, e.Name())).To(BeTrue(), "no test uses %s", e.Name())
	}
}

func TestPage_showsScript(t *testing.T) {
	g := NewWithT(t)
	_, rest, found := strings.Cut(read(t, "..", "..", "docs", "gitops.md"), "```yaml\napiVersion: v1\nkind: ConfigMap\n")
	g.Expect(found).To(BeTrue())
	block, _, _ := strings.Cut(rest, "```")
	var configMap struct {
		Data map[string]string `json:"data"`
	}
	g.Expect(yaml.Unmarshal([]byte(block), &configMap)).To(Succeed())
	var customizations map[string]map[string]string
	g.Expect(yaml.Unmarshal([]byte(configMap.Data["resource.customizations"]), &customizations)).To(Succeed())
	g.Expect(customizations).To(HaveKeyWithValue(v1alpha1.GroupVersion.Group+"/*", HaveKeyWithValue("health.lua", read(t, directory, "health.lua"))))
}
