package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

func TestRows_haveUniqueNamesAndAGroup(t *testing.T) {
	g := NewWithT(t)
	seen := map[string]bool{}
	var all []string
	for _, row := range rows() {
		g.Expect(seen[row.ID]).To(BeFalse(), row.ID)
		seen[row.ID] = true
		all = append(all, row.ID)
	}
	var grouped []string
	for _, group := range (&bench{}).groups() {
		grouped = append(grouped, group.ids...)
	}
	g.Expect(all).To(ConsistOf(grouped))
}

func TestRows_areChosenByFlagOrVariable(t *testing.T) {
	g := NewWithT(t)
	chosen := func(args ...string) []string {
		s, err := parseSettings(args, io.Discard)
		g.Expect(err).NotTo(HaveOccurred())
		var ids []string
		for _, row := range newBench(s, io.Discard).report.Rows {
			ids = append(ids, row.ID)
		}
		return ids
	}
	t.Setenv("ROWS", "")
	g.Expect(chosen()).To(HaveLen(len(rows())))
	g.Expect(chosen("--rows", "^git/clone$")).To(Equal([]string{rowClone}))
	t.Setenv("ROWS", "second|ls-remote")
	g.Expect(chosen()).To(Equal([]string{rowList, rowSecondStart}))
	for _, wrong := range [][]string{{"--rows", "("}, {"git"}, {"--unknown"}} {
		_, err := parseSettings(wrong, io.Discard)
		g.Expect(err).To(HaveOccurred(), "%q", wrong)
	}
}

func TestRun_refusesAnUnknownRow(t *testing.T) {
	_, err := run(t.Context(), settings{rows: regexp.MustCompile("nonsense")})
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("--list")))
}

func TestAlternate_swapsTheOrderInEachRound(t *testing.T) {
	g := NewWithT(t)
	var order []string
	call := func(name string, value float64) func(int) (float64, error) {
		return func(round int) (float64, error) {
			order = append(order, fmt.Sprint(name, round))
			return value + float64(round), nil
		}
	}
	o, r, err := alternate(exactly(3), call("ours", 10), call("reference", 20))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(order).To(Equal([]string{"ours0", "reference0", "reference1", "ours1", "ours2", "reference2"}))
	g.Expect(o).To(Equal([]float64{10, 11, 12}))
	g.Expect(r).To(Equal([]float64{20, 21, 22}))
	broken := errors.New("broken")
	_, _, err = alternate(exactly(3), call("ours", 0), func(int) (float64, error) { return 0, broken })
	g.Expect(err).To(MatchError(broken))
}

func TestAlternate_stopsWhenTheRatioIsPrecise(t *testing.T) {
	g := NewWithT(t)
	one := func(int) (float64, error) { return 1, nil }
	steady := func(int) (float64, error) { return 2, nil }
	erratic := func(round int) (float64, error) { return float64(1 + round%4), nil }
	o, _, err := alternate(until(10), steady, one)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(o).To(HaveLen(10))
	o, r, err := alternate(until(10), erratic, one)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(o).To(HaveLen(30))
	g.Expect(r).To(HaveLen(30))
}

func TestProtections_protectDifferentBranches(t *testing.T) {
	g := NewWithT(t)
	seen := map[string]bool{}
	for _, p := range protections("one", batch) {
		seen[p.Spec.ProjectRef.Name+" "+p.Spec.Branch] = true
	}
	g.Expect(seen).To(HaveLen(batch))
}

func TestAwaitReady_countsEachReadyProtectionOnce(t *testing.T) {
	g := NewWithT(t)
	events := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 10})
	send := func(name string, generation, observed int64, ready metav1.ConditionStatus) {
		p := &v1alpha1.ProtectedBranch{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: generation}}
		p.Status.ObservedGeneration = observed
		p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: ready}}
		events.Modify(p)
	}
	send("a", 1, 1, metav1.ConditionFalse)
	send("a", 2, 1, metav1.ConditionTrue)
	send("a", 2, 2, metav1.ConditionTrue)
	send("a", 2, 2, metav1.ConditionTrue)
	every := func(*v1alpha1.ProtectedBranch) bool { return true }
	ctx, cancel := context.WithCancelCause(t.Context())
	late := errors.New("too late")
	cancel(late)
	g.Eventually(func() error { return awaitReady(ctx, events.ResultChan(), 2, every) }).Should(MatchError(late))

	send("b", 1, 1, metav1.ConditionTrue)
	send("a", 3, 3, metav1.ConditionTrue)
	g.Expect(awaitReady(t.Context(), events.ResultChan(), 2, every)).To(Succeed())
	send("a", 3, 3, metav1.ConditionTrue)
	send("a", 4, 4, metav1.ConditionTrue)
	newer := func(p *v1alpha1.ProtectedBranch) bool { return p.Generation > 3 }
	g.Expect(awaitReady(t.Context(), events.ResultChan(), 1, newer)).To(Succeed())
	events.Stop()
	g.Expect(awaitReady(t.Context(), events.ResultChan(), 1, every)).To(MatchError(ContainSubstring("ended")))
}
