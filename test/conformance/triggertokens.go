package conformance

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/triggertoken"
	"github.com/forgeplane/forgeplane/test/forgeplane"
)

// newTrigger creates a trigger token, which a person owns.
func (d *door) newTrigger(p *person, project any, description string) *gitlab.PipelineTrigger {
	GinkgoHelper()
	t, r, err := d.as(p).PipelineTriggers.AddPipelineTrigger(project, &gitlab.AddPipelineTriggerOptions{Description: &description})
	Expect(err).NotTo(HaveOccurred())
	Expect(r.StatusCode).To(Equal(http.StatusCreated))
	return t
}

// declared returns the object of a trigger token.
func declared(id int64) *v1alpha1.TriggerToken {
	GinkgoHelper()
	var all v1alpha1.TriggerTokenList
	Expect(api.List(context.Background(), &all, client.MatchingFields{"spec.id": fmt.Sprint(id)})).To(Succeed())
	Expect(all.Items).To(HaveLen(1))
	return &all.Items[0]
}

var _ = throughEachDoor("Pipeline triggers", func(d *door) {
	It("are created, read, changed and removed", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		c := d.as(maintainer).PipelineTriggers
		for _, id := range []any{team.project.ID, team.project.PathWithNamespace} {
			const description = "Nächtlich, 50% + / ½"
			made := d.newTrigger(maintainer, id, description)
			Expect(made.ID).NotTo(BeZero())
			Expect(made.Description).To(Equal(description))
			Expect(made.Token).To(MatchRegexp("^glptt-[0-9a-f]{40}$"))
			Expect(made.CreatedAt).To(HaveValue(BeTemporally("~", time.Now(), time.Minute)))
			Expect(made.UpdatedAt).NotTo(BeNil())
			Expect(made.LastUsed).To(BeNil())
			Expect(made.DeletedAt).To(BeNil())
			Expect(made.Owner.ID).To(Equal(maintainer.id))
			Expect(made.Owner.Username).To(Equal("maintainer"))

			got, _, err := c.GetPipelineTrigger(id, made.ID)
			Expect(err).NotTo(HaveOccurred())
			Expect(got).To(Equal(made))
			changed, r, err := c.EditPipelineTrigger(id, made.ID, &gitlab.EditPipelineTriggerOptions{Description: gitlab.Ptr("Weekly")})
			Expect(err).NotTo(HaveOccurred())
			Expect(r.StatusCode).To(Equal(200))
			Expect(changed.Description).To(Equal("Weekly"))
			Expect(changed.Token).To(Equal(made.Token))
			same, r, err := c.EditPipelineTrigger(id, made.ID, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(r.StatusCode).To(Equal(200))
			Expect(same).To(Equal(changed))
			listed, _, err := c.ListPipelineTriggers(id, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(listed).To(HaveExactElements(Equal(changed)))

			r, err = c.DeletePipelineTrigger(id, made.ID)
			Expect(err).NotTo(HaveOccurred())
			Expect(answered(r)).To(Equal("204"))
			_, r, err = c.GetPipelineTrigger(id, made.ID)
			Expect(err).To(MatchError(gitlab.ErrNotFound))
			Expect(answered(r)).To(Equal(`404 {"message":"404 Not found"}`))
		}
	})

	It("can have the same description any number of times", d.again(), func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		first, second := d.newTrigger(maintainer, team.project.ID, "CI"), d.newTrigger(maintainer, team.project.ID, "CI")
		Expect(second.ID).NotTo(Equal(first.ID))
		Expect(second.Token).NotTo(Equal(first.Token))
		empty := d.newTrigger(maintainer, team.project.ID, "")
		Expect(empty.Description).To(BeEmpty())
	})

	It("show their token to their owner, and four characters to others", d.again(), func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		made := d.newTrigger(maintainer, team.project.ID, "Nightly")
		short := strings.TrimPrefix(made.Token, triggertoken.Prefix)[:4]
		for p, want := range map[*person]string{maintainer: made.Token, owner: short, root: short} {
			got, _, err := d.as(p).PipelineTriggers.GetPipelineTrigger(team.project.ID, made.ID)
			Expect(err).NotTo(HaveOccurred())
			Expect(got.Token).To(Equal(want), p.name)
			Expect(got.Owner.ID).To(Equal(maintainer.id))
			listed, _, err := d.as(p).PipelineTriggers.ListPipelineTriggers(team.project.ID, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(listed).To(HaveExactElements(HaveField("Token", want)), p.name)
		}
		for _, p := range []*person{owner, root} {
			_, r, err := d.as(p).PipelineTriggers.EditPipelineTrigger(team.project.ID, made.ID, nil)
			Expect(err).To(HaveOccurred())
			Expect(answered(r)).To(Equal(`403 {"message":"403 Forbidden"}`), p.name)
		}
		r, err := d.as(owner).PipelineTriggers.DeletePipelineTrigger(team.project.ID, made.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("204"))
	})

	It("are not removed if they have changed meanwhile", d.again(), func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		made := d.newTrigger(maintainer, team.project.ID, "Nightly")
		before := time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat)
		r := send(d.as(maintainer), fmt.Sprintf("DELETE projects/%d/triggers/%d", team.project.ID, made.ID), "",
			gitlab.WithHeader("If-Unmodified-Since", before))
		Expect(answered(r)).To(Equal(`412 {"message":"412 Precondition Failed"}`))

		By("changing the trigger in a later second, and removing the version that was shown before")
		c, n := d.as(maintainer).PipelineTriggers, 0
		Eventually(func(g Gomega) {
			n++
			_, _, err := c.EditPipelineTrigger(team.project.ID, made.ID, &gitlab.EditPipelineTriggerOptions{Description: gitlab.Ptr(fmt.Sprint("Take ", n))})
			g.Expect(err).NotTo(HaveOccurred())
			shown, _, err := c.GetPipelineTrigger(team.project.ID, made.ID)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(*shown.UpdatedAt).To(BeTemporally(">", *made.CreatedAt))
			made = shown
		}).Should(Succeed())
		r = send(d.as(maintainer), fmt.Sprintf("DELETE projects/%d/triggers/%d", team.project.ID, made.ID), "",
			gitlab.WithHeader("If-Unmodified-Since", made.UpdatedAt.UTC().Format(http.TimeFormat)))
		Expect(answered(r)).To(Equal("204"))
	})

	It("have their value only in a Secret of the platform, which is deleted with them", d.again(), func() {
		ctx := context.Background()
		team := d.newTeam(gitlab.PrivateVisibility)
		made := d.newTrigger(maintainer, team.project.ID, "Nightly")
		object := declared(made.ID)
		Expect(fmt.Sprintf("%+v", object)).NotTo(ContainSubstring(strings.TrimPrefix(made.Token, triggertoken.Prefix)))
		secret := &corev1.Secret{}
		key := client.ObjectKey{Namespace: forgeplane.Namespace, Name: object.Status.SecretRef.Name}
		Expect(api.Get(ctx, key, secret)).To(Succeed())
		Expect(secret.Data).To(HaveKeyWithValue("token", []byte(made.Token)))
		inside := &corev1.SecretList{}
		Expect(api.List(ctx, inside, client.InNamespace(object.Namespace), client.HasLabels{v1alpha1.LabelSecret})).To(Succeed())
		Expect(inside.Items).To(BeEmpty())

		By("replacing the value by deleting the Secret")
		Expect(api.Delete(ctx, secret)).To(Succeed())
		Eventually(func(g Gomega) {
			got, _, err := d.as(maintainer).PipelineTriggers.GetPipelineTrigger(team.project.ID, made.ID)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got.Token).To(And(HavePrefix(triggertoken.Prefix), Not(Equal(made.Token))))
		}).WithPolling(polling).Should(Succeed())

		_, err := d.as(maintainer).PipelineTriggers.DeletePipelineTrigger(team.project.ID, made.ID)
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() error { return api.Get(ctx, key, secret) }).WithPolling(polling).
			Should(Satisfy(apierrors.IsNotFound))
	})

	It("that were declared without an owner have no owner", d.again(), func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		like := declared(d.newTrigger(maintainer, team.project.ID, "Nightly").ID)
		t := &v1alpha1.TriggerToken{Spec: v1alpha1.TriggerTokenSpec{ProjectRef: like.Spec.ProjectRef, Description: "Declared"}}
		t.Namespace, t.Name = like.Namespace, fresh("declared")
		Expect(api.Create(context.Background(), t)).To(Succeed())
		Eventually(func(g Gomega) {
			listed, _, err := d.as(maintainer).PipelineTriggers.ListPipelineTriggers(team.project.ID, nil)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(listed).To(ContainElement(And(HaveField("Description", "Declared"), HaveField("Owner", BeNil()), HaveField("Token", HaveLen(4)))))
		}).WithPolling(polling).Should(Succeed())
	})
})
