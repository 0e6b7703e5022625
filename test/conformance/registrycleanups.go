package conformance

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/fieldmanager"
)

var _ = throughEachDoor("The bulk deletion of tags", func(d *door) {
	const again = `400 {"message":"This request has already been made. You can run this at most once an hour for a given container repository"}`
	names := func(id int64) []string {
		GinkgoHelper()
		tags, _, err := d.as(guest).ContainerRegistry.GetSingleRegistryRepository(id, &gitlab.GetSingleRegistryRepositoryOptions{Tags: gitlab.Ptr(true)})
		Expect(err).NotTo(HaveOccurred())
		var all []string
		for _, tag := range tags.Tags {
			all = append(all, tag.Name)
		}
		return all
	}

	It("deletes what the rules select, for Maintainers and once an hour", d.again(), func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		path := team.project.PathWithNamespace
		for _, tag := range []string{"latest", "v1", "v2", "v3", "rc1", "rc22"} {
			pushImage(path + "/web:" + tag)
		}
		id := d.repositoriesOf(guest, team.project.ID)[0].ID
		o := &gitlab.DeleteRegistryRepositoryTagsOptions{
			NameRegexpDelete: gitlab.Ptr(`v\d+|rc\d+|latest`), NameRegexpKeep: gitlab.Ptr("v1"), KeepN: gitlab.Ptr(int64(1)), OlderThan: gitlab.Ptr("2 hours 30 mins"),
		}
		r, err := d.as(developer).ContainerRegistry.DeleteRegistryRepositoryTags(path, id, o)
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`403 {"message":"403 Forbidden"}`))
		c := d.as(maintainer).ContainerRegistry
		r, err = c.DeleteRegistryRepositoryTags(path, id, o)
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("202 202"))
		r, err = c.DeleteRegistryRepositoryTags(team.project.ID, id, o)
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(again))
		// All images have the same time, so the newest one is the last by its name.
		Eventually(func() []string { return names(id) }).Should(Equal([]string{"latest", "v1", "v3"}))
		shown, _, err := c.GetSingleRegistryRepository(id, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(shown.CleanupPolicyStartedAt).To(HaveValue(BeTemporally("~", time.Now(), time.Hour)))
		pushImage(path + "/web:rc1")
		Consistently(func() []string { return names(id) }, "1s").Should(ContainElement("rc1"), "the run has ended")
	})

	It("leaves a RegistryCleanup that says what was done", d.again(), func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		pushImage(team.project.PathWithNamespace + ":1.0")
		id := d.repositoriesOf(guest, team.project.ID)[0].ID
		_, err := d.as(maintainer).ContainerRegistry.DeleteRegistryRepositoryTags(team.project.ID, id, &gitlab.DeleteRegistryRepositoryTagsOptions{
			NameRegexpDelete: gitlab.Ptr(`1.+`),
		})
		Expect(err).NotTo(HaveOccurred())
		var found v1alpha1.RegistryCleanup
		Eventually(func() v1alpha1.RegistryCleanupState {
			var all v1alpha1.RegistryCleanupList
			Expect(json.Unmarshal([]byte(admin.Kubectl("get", "registrycleanups", "--all-namespaces", "--output=json")), &all)).To(Succeed())
			for _, m := range all.Items {
				if m.Status.TargetPath == team.project.PathWithNamespace && m.Status.LastRun != nil {
					found = m
					return m.Status.LastRun.State
				}
			}
			return ""
		}).Should(Equal(v1alpha1.RegistryCleanupFinished))
		Expect(found.Status.LastRun.Deleted).To(BeEquivalentTo(1))
		Expect(found.Spec.NameRegexDelete).To(Equal("1.+"))
		Expect(found.Spec.TTLAfterFinished.Duration).To(Equal(24 * time.Hour))
		Expect(names(id)).To(BeEmpty())

		// It belongs to the project until it is declared.
		object, namespace := "registrycleanup/"+found.Name, "--namespace="+found.Namespace
		owners := func() string { return admin.Field(".metadata.ownerReferences[*].kind", object, namespace) }
		Expect(owners()).To(Equal("Project"))
		admin.Kubectl("patch", object, namespace, "--type=merge", `--patch={"spec":{"ttlAfterFinished":"48h"}}`)
		Eventually(owners).Should(BeEmpty())
	})

	It("accepts one of several requests that are sent at once, and leaves no object of the others", d.again(), func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		pushImage(team.project.PathWithNamespace + ":1.0")
		id := d.repositoriesOf(guest, team.project.ID)[0].ID
		answers := make(chan string, 8)
		for range cap(answers) {
			go func() {
				defer GinkgoRecover()
				r, _ := d.as(maintainer).ContainerRegistry.DeleteRegistryRepositoryTags(team.project.ID, id, &gitlab.DeleteRegistryRepositoryTagsOptions{
					NameRegexpDelete: gitlab.Ptr("none"),
				})
				answers <- answered(r)
			}()
		}
		var refused []string
		for range cap(answers) {
			if answer := <-answers; answer != "202 202" {
				refused = append(refused, answer)
			}
		}
		Expect(refused).To(And(HaveLen(cap(answers)-1), HaveEach(again)))
		var all v1alpha1.RegistryCleanupList
		Expect(api.List(context.Background(), &all)).To(Succeed())
		project := projectOf(team.project.ID)
		all.Items = slices.DeleteFunc(all.Items, func(m v1alpha1.RegistryCleanup) bool {
			return m.Namespace != project.Namespace || m.Spec.ProjectRef.Name != project.Name
		})
		Expect(all.Items).To(HaveLen(1))
	})

	It("shares its hour with a RegistryCleanup that is deleted after its time", d.again(), func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		pushImage(team.project.PathWithNamespace + ":1.0")
		id := d.repositoriesOf(guest, team.project.ID)[0].ID
		project := projectOf(team.project.ID)
		m := &v1alpha1.RegistryCleanup{Spec: v1alpha1.RegistryCleanupSpec{
			ProjectRef: v1alpha1.Reference{Name: project.Name}, NameRegexDelete: ".*", TTLAfterFinished: &metav1.Duration{},
		}}
		m.Namespace, m.Name = project.Namespace, fresh("cleanup")
		Expect(api.Create(context.Background(), m, client.FieldOwner(fieldmanager.REST))).To(Succeed()) // a declared one would stay
		admin.Kubectl("wait", "--for=delete", "--timeout=60s", "registrycleanup/"+m.Name, "--namespace="+m.Namespace)
		Expect(names(id)).To(BeEmpty())
		r, err := d.as(maintainer).ContainerRegistry.DeleteRegistryRepositoryTags(team.project.ID, id, &gitlab.DeleteRegistryRepositoryTagsOptions{
			NameRegexpDelete: gitlab.Ptr(".*"),
		})
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(again))
	})

	It("refuses malformed expressions and missing ones", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		pushImage(team.project.PathWithNamespace + ":1.0")
		id := d.repositoriesOf(guest, team.project.ID)[0].ID
		c := d.as(maintainer).ContainerRegistry
		for _, bad := range []struct {
			o    gitlab.DeleteRegistryRepositoryTagsOptions
			want string
		}{
			{gitlab.DeleteRegistryRepositoryTagsOptions{}, `400 {"error":"name_regex, name_regex_delete are missing, at least one parameter must be provided"}`},
			{gitlab.DeleteRegistryRepositoryTagsOptions{NameRegexpDelete: gitlab.Ptr("(")}, `400 {"error":"name_regex_delete is an invalid regexp"}`},
			{gitlab.DeleteRegistryRepositoryTagsOptions{NameRegexpDelete: gitlab.Ptr(".*"), NameRegexpKeep: gitlab.Ptr("[")}, `400 {"error":"name_regex_keep is an invalid regexp"}`},
		} {
			r, err := c.DeleteRegistryRepositoryTags(team.project.ID, id, &bad.o)
			Expect(err).To(HaveOccurred())
			Expect(answered(r)).To(Equal(bad.want))
		}
		r, err := c.DeleteRegistryRepositoryTags(team.project.ID, id, &gitlab.DeleteRegistryRepositoryTagsOptions{
			NameRegexpDelete: gitlab.Ptr(".*"), NameRegexpKeep: gitlab.Ptr(".*"),
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(202), "a refused request does not use up the hour")
	})
})
