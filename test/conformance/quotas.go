package conformance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/forgeplane"
)

// bounded is a namespace with a group, a project, and the ResourceQuota that the documentation shows.
type bounded struct {
	quota   *corev1.ResourceQuota
	group   *gitlab.Group
	project *gitlab.Project
}

// documentedQuota returns the page about quotas, and the ResourceQuota in it.
func documentedQuota() (page string, q *corev1.ResourceQuota) {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(checkout.Dir, "docs", "rest.md"))
	Expect(err).NotTo(HaveOccurred())
	for _, example := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(text, -1) {
		if strings.Contains(string(example[1]), "kind: ResourceQuota") {
			q = &corev1.ResourceQuota{}
			Expect(yaml.UnmarshalStrict(example[1], q)).To(Succeed())
		}
	}
	Expect(q).NotTo(BeNil())
	return string(text), q
}

// newBounded creates what the documentation describes, in its own namespace.
func (d *door) newBounded() bounded {
	GinkgoHelper()
	ctx, name := context.Background(), fresh("bounded")
	_, quota := documentedQuota()
	quota.Namespace = name
	b := bounded{quota: quota}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		&v1alpha1.Group{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name}, Spec: v1alpha1.GroupSpec{Path: name}},
	} {
		Expect(api.Create(ctx, o)).To(Succeed())
	}
	Eventually(func() (*gitlab.Group, error) {
		var err error
		b.group, _, err = d.as(root).Groups.GetGroup(name, nil)
		return b.group, err
	}).WithPolling(polling).Should(HaveField("ID", Not(BeZero())))
	b.project = d.newProject(b.group.ID, gitlab.PrivateVisibility)
	// By then, everything that follows from the creation exists, too.
	admin.WaitReady("project", "--all", "--namespace="+name)
	Expect(api.Create(ctx, quota)).To(Succeed())
	return b
}

// use makes the quota report that everything is used, or nothing. The controller that counts does not run here.
func (b bounded) use(full bool) {
	GinkgoHelper()
	Eventually(func() error {
		current := &corev1.ResourceQuota{}
		if err := api.Get(context.Background(), client.ObjectKeyFromObject(b.quota), current); err != nil {
			return err
		}
		hard := current.Spec.Hard
		current.Status = corev1.ResourceQuotaStatus{Hard: hard.DeepCopy(), Used: hard.DeepCopy()}
		if !full {
			for what := range hard {
				current.Status.Used[what] = resource.MustParse("0")
			}
		}
		return api.Status().Update(context.Background(), current)
	}).WithPolling(polling).Should(Succeed())
}

// exceeded is the message for one object too many.
func (b bounded) exceeded(what corev1.ResourceName) string {
	limit := b.quota.Spec.Hard[what]
	return fmt.Sprintf("exceeded quota: forge, requested: %[1]s=1, used: %[1]s=%[2]s, limited: %[1]s=%[2]s", what, limit.String())
}

// post creates an object of a kind over REST.
func (b bounded) post(d *door, what corev1.ResourceName) string {
	GinkgoHelper()
	word := fresh("one-more")
	requests := map[corev1.ResourceName]struct{ request, body string }{
		"count/projects.forgeplane.dev":          {"POST projects", fmt.Sprintf(`{"name":%q,"namespace_id":%d}`, word, b.group.ID)},
		"count/groups.forgeplane.dev":            {"POST groups", fmt.Sprintf(`{"name":%q,"path":%[1]q,"parent_id":%[2]d}`, word, b.group.ID)},
		"count/labels.forgeplane.dev":            {"POST projects/{id}/labels", fmt.Sprintf(`{"name":%q,"color":"red"}`, word)},
		"count/protectedbranches.forgeplane.dev": {"POST projects/{id}/protected_branches", fmt.Sprintf(`{"name":%q}`, word)},
		"count/remotemirrors.forgeplane.dev": {
			"POST projects/{id}/remote_mirrors", fmt.Sprintf(`{"url":"https://ann:not-said-to-anybody@127.0.0.1:1/%s.git"}`, word),
		},
		"count/triggertokens.forgeplane.dev": {"POST projects/{id}/triggers", fmt.Sprintf(`{"description":%q}`, word)},
	}
	Expect(requests).To(HaveKey(what), "what the documentation bounds has to be tried")
	request := strings.Replace(requests[what].request, "{id}", fmt.Sprint(b.project.ID), 1)
	return answered(send(d.as(root), request, requests[what].body))
}

// objects are the objects of the namespace, and those that Forgeplane keeps for it elsewhere.
func (b bounded) objects() (all []string) {
	GinkgoHelper()
	lists := []client.ObjectList{&corev1.SecretList{}}
	for _, kind := range v1alpha1.Kinds() {
		lists = append(lists, kind.NewList())
	}
	for _, l := range lists {
		Expect(api.List(context.Background(), l, client.InNamespace(b.quota.Namespace))).To(Succeed())
		all = append(all, names(l, func(client.Object) bool { return true })...)
	}
	var kept corev1.SecretList
	Expect(api.List(context.Background(), &kept, client.InNamespace(forgeplane.Namespace))).To(Succeed())
	return append(all, names(&kept, func(o client.Object) bool {
		return strings.HasPrefix(o.GetAnnotations()[v1alpha1.AnnotationHolder], b.quota.Namespace+"/")
	})...)
}

// names returns the names of the objects of a list, each with its kind.
func names(l client.ObjectList, which func(client.Object) bool) (all []string) {
	GinkgoHelper()
	Expect(meta.EachListItem(l, func(r runtime.Object) error {
		if o := r.(client.Object); which(o) {
			all = append(all, fmt.Sprintf("%T %s", o, client.ObjectKeyFromObject(o)))
		}
		return nil
	})).To(Succeed())
	slices.Sort(all)
	return all
}

const quotaOfLabels = "count/labels.forgeplane.dev"

var _ = throughEachDoor("A namespace with the ResourceQuota of the documentation", func(d *door) {
	It("accepts no more over REST than it allows, and keeps nothing of a refused request", d.again(), func() {
		b := d.newBounded()
		b.use(true)
		refused := func(what corev1.ResourceName) string {
			return `403 {"message":"403 Forbidden - The ResourceQuota of the Kubernetes namespace does not allow more: ` + b.exceeded(what) + `"}`
		}
		// kube-apiserver learns of a quota with a delay.
		Eventually(func() string { return b.post(d, quotaOfLabels) }).WithPolling(polling).Should(Equal(refused(quotaOfLabels)))
		before := b.objects()
		for what := range b.quota.Spec.Hard {
			if what != "count/secrets" { // Forgeplane creates none in the namespaces of tenants
				Expect(b.post(d, what)).To(Equal(refused(what)))
			}
		}
		Expect(b.objects()).To(Equal(before))
		b.use(false)
		Eventually(func() string { return b.post(d, quotaOfLabels) }).WithPolling(polling).Should(HavePrefix("201 "))
		for what := range b.quota.Spec.Hard {
			if what != "count/secrets" {
				Expect(b.post(d, what)).To(HavePrefix("201 "), "%s", what)
			}
		}
	})
})

var _ = Describe("The ResourceQuota of the documentation", func() {
	It("limits what can be declared, with the message in the documentation", func() {
		b := own.newBounded()
		b.use(true)
		page, _ := documentedQuota()
		said, _, _ := strings.Cut(b.exceeded(quotaOfLabels), "limited:")
		Expect(page).To(ContainSubstring(said))
		Eventually(func() error {
			return api.Create(context.Background(), &v1alpha1.Label{
				ObjectMeta: metav1.ObjectMeta{Namespace: b.quota.Namespace, Name: fresh("declared")},
				Spec:       v1alpha1.LabelSpec{Title: fresh("declared"), Color: "red", GroupRef: &v1alpha1.Reference{Name: b.quota.Namespace}},
			})
		}).WithPolling(polling).Should(And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring(b.exceeded(quotaOfLabels)))))
		screen := admin.Fail("kubectl", "create", "secret", "generic", "one-more", "--namespace="+b.quota.Namespace)
		Expect(screen).To(ContainSubstring(b.exceeded("count/secrets")))
	})
})
