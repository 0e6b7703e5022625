package conformance

import (
	"context"
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

var _ = throughEachDoor("CI variables", func(d *door) {
	It("are created, read, changed and removed in a project", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		c := d.as(maintainer).ProjectVariables
		for _, id := range []any{team.project.ID, team.project.PathWithNamespace} {
			made, r, err := c.CreateVariable(id, &gitlab.CreateProjectVariableOptions{
				Key: gitlab.Ptr("DEPLOY_TOKEN"), Value: gitlab.Ptr("long-enough"), Masked: gitlab.Ptr(true), Protected: gitlab.Ptr(true),
				Raw: gitlab.Ptr(true), VariableType: gitlab.Ptr(gitlab.FileVariableType), Description: gitlab.Ptr("Lets jobs deploy"),
			})
			Expect(err).NotTo(HaveOccurred())
			Expect(r.StatusCode).To(Equal(201))
			Expect(*made).To(Equal(gitlab.ProjectVariable{
				Key: "DEPLOY_TOKEN", Value: "long-enough", VariableType: gitlab.FileVariableType, Protected: true, Masked: true, Raw: true,
				EnvironmentScope: "*", Description: "Lets jobs deploy",
			}))
			_, r, err = c.CreateVariable(id, &gitlab.CreateProjectVariableOptions{Key: gitlab.Ptr("DEPLOY_TOKEN"), Value: gitlab.Ptr("again")})
			Expect(err).To(HaveOccurred())
			Expect(answered(r)).To(Equal(`400 {"message":{"key":["(DEPLOY_TOKEN) has already been taken"]}}`))
			review, _, err := c.CreateVariable(id, &gitlab.CreateProjectVariableOptions{
				Key: gitlab.Ptr("DEPLOY_TOKEN"), Value: gitlab.Ptr("of reviews"), EnvironmentScope: gitlab.Ptr("review/*"),
			})
			Expect(err).NotTo(HaveOccurred())

			listed, _, err := c.ListVariables(id, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(listed).To(HaveExactElements(made, review))
			_, r, err = c.GetVariable(id, "DEPLOY_TOKEN", nil)
			Expect(err).To(HaveOccurred())
			Expect(r).NotTo(BeNil(), "%v", err)
			Expect(r.StatusCode).To(Equal(409))
			filter := &gitlab.VariableFilter{EnvironmentScope: "review/*"}
			got, _, err := c.GetVariable(id, "DEPLOY_TOKEN", &gitlab.GetProjectVariableOptions{Filter: filter})
			Expect(err).NotTo(HaveOccurred())
			Expect(got).To(Equal(review))

			changed, r, err := c.UpdateVariable(id, "DEPLOY_TOKEN", &gitlab.UpdateProjectVariableOptions{
				Value: gitlab.Ptr("of production"), EnvironmentScope: gitlab.Ptr("production"), Filter: filter,
			})
			Expect(err).NotTo(HaveOccurred())
			Expect(r.StatusCode).To(Equal(200))
			Expect(changed).To(And(HaveField("Value", "of production"), HaveField("EnvironmentScope", "production")))
			for _, scope := range []string{"*", "production"} {
				r, err = c.RemoveVariable(id, "DEPLOY_TOKEN", &gitlab.RemoveProjectVariableOptions{Filter: &gitlab.VariableFilter{EnvironmentScope: scope}})
				Expect(err).NotTo(HaveOccurred())
				Expect(answered(r)).To(Equal("204"))
			}
			_, r, err = c.GetVariable(id, "DEPLOY_TOKEN", nil)
			Expect(err).To(MatchError(gitlab.ErrNotFound))
			Expect(answered(r)).To(Equal(`404 {"message":"404 Variable Not Found"}`))
		}
	})

	It("are never shown again if they are hidden", d.again(), func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		c := d.as(maintainer).ProjectVariables
		made, r, err := c.CreateVariable(team.project.ID, &gitlab.CreateProjectVariableOptions{
			Key: gitlab.Ptr("TOKEN"), Value: gitlab.Ptr("long-enough"), MaskedAndHidden: gitlab.Ptr(true),
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).NotTo(ContainSubstring("long-enough"))
		Expect(made).To(And(HaveField("Hidden", true), HaveField("Masked", true), HaveField("Value", BeEmpty())))
	})

	It("belong to those who apply them, although they were created over REST", d.again(), func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		_, _, err := d.as(maintainer).ProjectVariables.CreateVariable(team.project.ID, &gitlab.CreateProjectVariableOptions{
			Key: gitlab.Ptr("HOST"), Value: gitlab.Ptr("a.example"),
		})
		Expect(err).NotTo(HaveOccurred())
		project := projectOf(team.project.ID)
		made := func() []v1alpha1.Variable {
			var all v1alpha1.VariableList
			Expect(api.List(context.Background(), &all, client.InNamespace(project.Namespace))).To(Succeed())
			return slices.DeleteFunc(all.Items, func(v v1alpha1.Variable) bool {
				return v.Spec.ProjectRef == nil || v.Spec.ProjectRef.Name != project.Name
			})
		}
		Expect(made()).To(HaveExactElements(HaveField("OwnerReferences", HaveLen(1))))
		v := made()[0]
		admin.DoWith(fmt.Sprintf(`{"apiVersion": "forgeplane.dev/v1alpha1", "kind": "Variable", "metadata": {"namespace": %q, "name": %q},
			"spec": {"projectRef": {"name": %q}, "key": "HOST"}}`, v.Namespace, v.Name, v.Spec.ProjectRef.Name),
			"kubectl", "apply", "--server-side", "--force-conflicts", "--filename=-")
		Eventually(made).Should(HaveExactElements(HaveField("OwnerReferences", BeEmpty())))
	})

	It("are for the Owners of a group", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		c := d.as(owner).GroupVariables
		made, r, err := c.CreateVariable(team.group.ID, &gitlab.CreateGroupVariableOptions{Key: gitlab.Ptr("HOST"), Value: gitlab.Ptr("a.example")})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(201))
		Expect(*made).To(Equal(gitlab.GroupVariable{Key: "HOST", Value: "a.example", VariableType: gitlab.EnvVariableType, EnvironmentScope: "*"}))
		got, _, err := c.GetVariable(team.group.ID, "HOST", nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(got).To(Equal(made))
		changed, _, err := c.UpdateVariable(team.group.ID, "HOST", &gitlab.UpdateGroupVariableOptions{Value: gitlab.Ptr("b.example"), Protected: gitlab.Ptr(true)})
		Expect(err).NotTo(HaveOccurred())
		listed, _, err := c.ListVariables(team.group.ID, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(listed).To(HaveExactElements(And(Equal(changed), HaveField("Value", "b.example"), HaveField("Protected", true))))
		Expect(answered(send(d.as(maintainer), "GET groups/"+team.group.FullPath+"/variables", ""))).To(Equal(`403 {"message":"403 Forbidden"}`))
		r, err = c.RemoveVariable(team.group.ID, "HOST", nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("204"))
	})

	It("of the installation are for administrators", func() {
		c := d.as(root).InstanceVariables
		made, r, err := c.CreateVariable(&gitlab.CreateInstanceVariableOptions{Key: gitlab.Ptr("PROXY"), Value: gitlab.Ptr("http://proxy.example")})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(201))
		got, _, err := c.GetVariable("PROXY")
		Expect(err).NotTo(HaveOccurred())
		Expect(got).To(Equal(made))
		changed, _, err := c.UpdateVariable("PROXY", &gitlab.UpdateInstanceVariableOptions{Value: gitlab.Ptr("http://other.example")})
		Expect(err).NotTo(HaveOccurred())
		Expect(changed.Value).To(Equal("http://other.example"))
		listed, _, err := c.ListVariables(nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(listed).To(HaveExactElements(changed))
		Expect(answered(send(d.as(owner), "GET admin/ci/variables", ""))).To(Equal(`403 {"message":"403 Forbidden"}`))
		r, err = c.RemoveVariable("PROXY")
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("204"))
	})
})
