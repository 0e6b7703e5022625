package forge

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	// Successors of kubectl wait and GitOps tools use this library to judge objects.
	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/argocd"
)

// lawful returns the problem of a status that a controller has written, whatever its age.
func lawful(obj v1alpha1.Object) error {
	s := obj.GetCommonStatus()
	if s.ObservedGeneration == -1 && len(s.Conditions) == 0 {
		return nil // No controller has observed it.
	}
	var problems []error
	complain := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if s.ObservedGeneration < 1 || s.ObservedGeneration > obj.GetGeneration() {
		complain("observedGeneration is %d of %d", s.ObservedGeneration, obj.GetGeneration())
	}
	for _, c := range s.Conditions {
		switch {
		case c.Type != v1alpha1.ConditionReady && c.Type != v1alpha1.ConditionReconciling && c.Type != v1alpha1.ConditionStalled:
			complain("there is no condition %s", c.Type)
		case c.Type != v1alpha1.ConditionReady && c.Status != metav1.ConditionTrue:
			complain("%s is present and not true", c.Type)
		case c.Status == metav1.ConditionUnknown:
			complain("%s is unknown", c.Type)
		case c.ObservedGeneration > s.ObservedGeneration:
			complain("%s describes generation %d, the status of %d", c.Type, c.ObservedGeneration, s.ObservedGeneration)
		case c.Reason == "":
			complain("%s has no reason", c.Type)
		case c.Type != v1alpha1.ConditionReady && c.Message == "":
			complain("%s has no message", c.Type)
		}
	}
	is := func(conditionType string) *metav1.Condition {
		return meta.FindStatusCondition(s.Conditions, conditionType)
	}
	ready, reconciling, stalled := is(v1alpha1.ConditionReady), is(v1alpha1.ConditionReconciling), is(v1alpha1.ConditionStalled)
	switch {
	case ready == nil:
		complain("there is no condition Ready")
	case reconciling != nil && stalled != nil:
		complain("it is Reconciling and Stalled at once")
	case ready.Status == metav1.ConditionTrue && (reconciling != nil || stalled != nil):
		complain("it is Ready, and still Reconciling or Stalled")
	case ready.Status == metav1.ConditionFalse && reconciling == nil && stalled == nil:
		complain("it is not Ready, and neither Reconciling nor Stalled")
	case reconciling != nil && (reconciling.Reason != ready.Reason || reconciling.Message != ready.Message),
		stalled != nil && (stalled.Reason != ready.Reason || stalled.Message != ready.Message):
		complain("the reason of Ready differs from that of Reconciling or Stalled")
	case ready.Status == metav1.ConditionTrue && (ready.Reason == v1alpha1.ReasonReady) != (ready.Message == ""):
		complain("only an object that is settled says why, in the message of Ready")
	}
	return errors.Join(problems...)
}

// checkStatus applies lawful and further rules to a status that has just been written: it must describe the current declaration, and a tool
// that knows kstatus must come to the same result.
func checkStatus(obj v1alpha1.Object) error {
	problems := []error{lawful(obj)}
	s := obj.GetCommonStatus()
	if s.ObservedGeneration != obj.GetGeneration() {
		problems = append(problems, fmt.Errorf("observedGeneration is %d of %d", s.ObservedGeneration, obj.GetGeneration()))
	}
	for _, c := range s.Conditions {
		if c.ObservedGeneration != obj.GetGeneration() {
			problems = append(problems, fmt.Errorf("%s describes generation %d of %d", c.Type, c.ObservedGeneration, obj.GetGeneration()))
		}
	}
	judged, err := judge(obj)
	if err != nil {
		return err
	}
	expected := status.InProgressStatus
	switch {
	case !obj.GetDeletionTimestamp().IsZero():
		expected = status.TerminatingStatus
	case meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionReady):
		expected = status.CurrentStatus
	case meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionStalled):
		expected = status.FailedStatus
	}
	if judged != expected {
		problems = append(problems, fmt.Errorf("kstatus takes it for %s instead of %s", judged, expected))
	}
	return errors.Join(problems...)
}

func judge(obj v1alpha1.Object) (status.Status, error) {
	content, err := untyped(obj)
	if err != nil {
		return "", err
	}
	result, err := status.Compute(content)
	if err != nil {
		return "", err
	}
	return result.Status, nil
}

func untyped(obj v1alpha1.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	return &unstructured.Unstructured{Object: content}, err
}

// state is a state that the conditions of an object show.
type state struct {
	kind   stateKind
	reason string
	words  []string
}

type stateKind string

const (
	ready   stateKind = "ready"
	ended   stateKind = "settled"
	stalled stateKind = "stalled"
	waiting stateKind = "waiting"
	failing stateKind = "failing"
)

// of returns why obj is not in the state.
func (s state) of(obj v1alpha1.Object) error {
	problems := []error{checkStatus(obj)}
	conditions := obj.GetCommonStatus().Conditions
	is := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
	if is == nil {
		return errors.Join(problems...)
	}
	found := ready
	switch {
	case meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionStalled):
		found = stalled
	case meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionReconciling):
		found = waiting
	case is.Reason != v1alpha1.ReasonReady:
		found = ended
	}
	if want := s.kind; want != found && (want != failing || found != waiting) {
		problems = append(problems, fmt.Errorf("it is %s, not %s: %s: %s", found, want, is.Reason, is.Message))
	}
	if s.kind != ready && is.Reason != s.reason {
		problems = append(problems, fmt.Errorf("the reason is %s, not %s: %s", is.Reason, s.reason, is.Message))
	}
	for _, w := range s.words {
		if !strings.Contains(is.Message, w) {
			problems = append(problems, fmt.Errorf("the message does not say %q: %s", w, is.Message))
		}
	}
	return errors.Join(problems...)
}

// statusWatch checks every status in the events of a watch, and that Argo CD judges it like kstatus.
type statusWatch struct {
	health   *argocd.Check
	lock     sync.Mutex
	problems []string
}

// OnAdd checks a status.
func (w *statusWatch) OnAdd(o any, _ bool) { w.look(o) }

// OnUpdate checks a status.
func (w *statusWatch) OnUpdate(_, o any) { w.look(o) }

// OnDelete checks nothing.
func (*statusWatch) OnDelete(any) {}

func (w *statusWatch) look(o any) {
	obj, ok := o.(v1alpha1.Object)
	if !ok {
		return
	}
	if err := errors.Join(lawful(obj), w.unhealthy(obj)); err != nil {
		w.lock.Lock()
		defer w.lock.Unlock()
		w.problems = append(w.problems, fmt.Sprintf("%T %s: %s", obj, client.ObjectKeyFromObject(obj), err))
	}
}

// unhealthy returns how the health check for Argo CD is wrong about an object.
func (w *statusWatch) unhealthy(obj v1alpha1.Object) error {
	content, err := untyped(obj)
	if err != nil {
		return err
	}
	_, err = w.health.Verify(content)
	return err
}

// expectLawful fails if a status has broken a rule since the last call.
func (w *statusWatch) expectLawful() {
	GinkgoHelper()
	w.lock.Lock()
	defer w.lock.Unlock()
	problems := w.problems
	w.problems = nil
	Expect(problems).To(BeEmpty(), "problems in the statuses that controllers wrote")
}
