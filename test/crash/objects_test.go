package crash

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/forge"
	"github.com/forgeplane/forgeplane/test/patience"
)

// callTimeout ends a call of the API server that hangs.
const callTimeout = patience.Wait

// yard is the group of all projects.
var yard = forge.Group("yard").In("yard").Build()

// project returns a builder for a project on a shard.
func project(name, shard string) *forge.ProjectBuilder {
	return forge.Project(name).In(yard).On(shard).Discarded()
}

// create creates a project.
func create(p *forge.ProjectBuilder) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	Expect(api.Create(ctx, p.Build())).To(Succeed())
}

// remove requests the deletion of projects, if they still exist, and does not wait for it.
func remove(names ...string) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	for _, name := range names {
		Expect(client.IgnoreNotFound(api.Delete(ctx, project(name, "").Build()))).To(Succeed())
	}
}

// expectRemoved removes projects and waits until they are gone.
func expectRemoved(names ...string) {
	GinkgoHelper()
	remove(names...)
	for _, name := range names {
		Eventually(read).WithArguments(name).WithPolling(polling).Should(BeNil())
	}
}

// read returns a project, or nil if it does not exist.
func read(name string) *v1alpha1.Project {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	p := &v1alpha1.Project{}
	err := api.Get(ctx, client.ObjectKey{Namespace: "yard", Name: name}, p)
	if apierrors.IsNotFound(err) {
		return nil
	}
	Expect(err).NotTo(HaveOccurred())
	return p
}

// look makes Forgeplane look at a shard now, which it otherwise does three times a minute.
func look(shard string) {
	GinkgoHelper()
	admin.Kubectl("annotate", "--overwrite", "repositorystorage", shard, "test/looked="+time.Now().Format("150405.000000"))
}

// lookUntil makes Forgeplane look at a shard until a project is ready, or is not. Forgeplane looks at the repositories of a shard only every few
// seconds.
func lookUntil(shard, name string, ready bool) {
	GinkgoHelper()
	Eventually(func() bool {
		look(shard)
		return isReady(read(name))
	}).WithPolling(time.Second).Should(Equal(ready), name)
}

// condition returns the condition Ready of an object if it describes the current generation, and a made-up condition otherwise.
func condition(object client.Object, status v1alpha1.CommonStatus) metav1.Condition {
	ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || status.ObservedGeneration != object.GetGeneration() {
		return metav1.Condition{Status: metav1.ConditionUnknown, Reason: "NotSeen"}
	}
	return *ready
}

// isReady reports whether a project exists and is ready.
func isReady(p *v1alpha1.Project) bool {
	return p != nil && condition(p, p.Status.CommonStatus).Status == metav1.ConditionTrue
}

// expectReady expects that projects become ready.
func expectReady(names ...string) {
	GinkgoHelper()
	for _, name := range names {
		Eventually(func() bool { return isReady(read(name)) }).WithPolling(polling).Should(BeTrue(), name)
	}
}

// expectProject expects that a project is not ready for a reason, with some words in the message.
func expectProject(name, reason, words string) {
	GinkgoHelper()
	expectUnready(reason, words, func() metav1.Condition {
		p := read(name)
		return condition(p, p.Status.CommonStatus)
	})
}

// expectShard does the same as expectProject for a shard.
func expectShard(name, reason, words string) {
	GinkgoHelper()
	expectUnready(reason, words, func() metav1.Condition {
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		defer cancel()
		s := &v1alpha1.RepositoryStorage{}
		Expect(api.Get(ctx, client.ObjectKey{Name: name}, s)).To(Succeed())
		return condition(s, s.Status.CommonStatus)
	})
}

func expectUnready(reason, words string, ready func() metav1.Condition) {
	GinkgoHelper()
	Eventually(ready).WithPolling(polling).Should(And(HaveField("Status", metav1.ConditionFalse),
		HaveField("Reason", reason), HaveField("Message", ContainSubstring(words))))
}

// expectAllReady expects that every object of Forgeplane becomes ready, and that exactly these projects exist in the end.
func expectAllReady(projects ...string) {
	GinkgoHelper()
	begun, late := time.Now(), ""
	defer func() {
		if late != "" {
			AddReportEntry("late", late, ReportEntryVisibilityAlways)
		}
	}()
	Eventually(func(g Gomega) {
		var found []string
		for _, object := range admin.List("forge,accesstokens", "--all-namespaces") {
			if object.GetKind() == "Project" {
				found = append(found, object.GetName())
			}
			why := unready(&object)
			if why != "" && time.Since(begun) > 5*time.Second {
				late = why
			}
			g.Expect(why).To(BeEmpty())
		}
		g.Expect(found).To(ConsistOf(projects))
	}).WithPolling(polling).Should(Succeed())
}

// unready returns why an object is not ready, or an empty string.
func unready(object *unstructured.Unstructured) string {
	observed, _, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	ready := slices.ContainsFunc(conditions, func(entry any) bool {
		fields, _ := entry.(map[string]any)
		return fields["type"] == v1alpha1.ConditionReady && fields["status"] == "True"
	})
	if ready && observed == object.GetGeneration() && object.GetDeletionTimestamp() == nil {
		return ""
	}
	return fmt.Sprintf("%s %s, generation %d, deleted %v: observed %d, %v", object.GetKind(), object.GetName(), object.GetGeneration(),
		object.GetDeletionTimestamp(), observed, conditions)
}
