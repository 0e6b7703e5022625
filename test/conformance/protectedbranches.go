package conformance

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// level is the content of an access level record, without its id.
func level(l *gitlab.BranchAccessDescription) gitlab.BranchAccessDescription {
	said := *l
	said.ID = 0
	return said
}

func levels(all []*gitlab.BranchAccessDescription) (said []gitlab.BranchAccessDescription) {
	for _, l := range all {
		said = append(said, level(l))
	}
	return said
}

// of returns the records of roles.
func of(all ...gitlab.BranchAccessDescription) []gitlab.BranchAccessDescription { return all }

// The descriptions of the levels in the API.
var (
	noOne       = gitlab.BranchAccessDescription{AccessLevel: gitlab.NoPermissions, AccessLevelDescription: "No one"}
	developers  = gitlab.BranchAccessDescription{AccessLevel: gitlab.DeveloperPermissions, AccessLevelDescription: "Developers + Maintainers"}
	maintainers = gitlab.BranchAccessDescription{AccessLevel: gitlab.MaintainerPermissions, AccessLevelDescription: "Maintainers"}
	admins      = gitlab.BranchAccessDescription{AccessLevel: gitlab.AdminPermissions, AccessLevelDescription: "Instance admins"}
)

var _ = throughEachDoor("Protected branches", func(d *door) {
	var team team
	BeforeEach(func() { team = d.newTeam(gitlab.PrivateVisibility) })

	protect := func(id any, o *gitlab.ProtectRepositoryBranchesOptions) *gitlab.ProtectedBranch {
		GinkgoHelper()
		b, r, err := d.as(maintainer).ProtectedBranches.ProtectRepositoryBranches(id, o)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(201))
		return b
	}

	It("are for maintainers by default", d.again(), func() {
		made := protect(team.project.ID, &gitlab.ProtectRepositoryBranchesOptions{Name: gitlab.Ptr("main")})
		Expect(made.ID).NotTo(BeZero())
		Expect(made.Name).To(Equal("main"))
		for _, set := range [][]*gitlab.BranchAccessDescription{made.PushAccessLevels, made.MergeAccessLevels, made.UnprotectAccessLevels} {
			Expect(levels(set)).To(Equal(of(maintainers)))
			Expect(set[0].ID).NotTo(BeZero())
		}
		Expect(made.AllowForcePush).To(BeFalse())
		Expect(made.CodeOwnerApprovalRequired).To(BeFalse())
		for _, id := range []any{team.project.ID, team.project.PathWithNamespace} {
			got, _, err := d.as(developer).ProtectedBranches.GetProtectedBranch(id, "main")
			Expect(err).NotTo(HaveOccurred())
			Expect(got).To(Equal(made))
		}
	})

	It("are for the given roles", d.again(), func() {
		made := protect(team.project.PathWithNamespace, &gitlab.ProtectRepositoryBranchesOptions{
			Name: gitlab.Ptr("release/*"), PushAccessLevel: gitlab.Ptr(gitlab.NoPermissions),
			MergeAccessLevel: gitlab.Ptr(gitlab.DeveloperPermissions), UnprotectAccessLevel: gitlab.Ptr(gitlab.AdminPermissions),
			AllowForcePush: gitlab.Ptr(true), CodeOwnerApprovalRequired: gitlab.Ptr(true),
		})
		Expect(levels(made.PushAccessLevels)).To(Equal(of(noOne)))
		Expect(levels(made.MergeAccessLevels)).To(Equal(of(developers)))
		Expect(levels(made.UnprotectAccessLevels)).To(Equal(of(admins)))
		Expect(made.AllowForcePush).To(BeTrue())
		Expect(made.CodeOwnerApprovalRequired).To(BeTrue())
	})

	It("are for users, groups and deploy keys instead of the default, or in addition to a role", d.again(), func() {
		key := d.newDeployKey(team.project.ID, "Robot", true)
		made := protect(team.project.ID, &gitlab.ProtectRepositoryBranchesOptions{
			Name:               gitlab.Ptr("main"),
			AllowedToPush:      &[]*gitlab.BranchPermissionOptions{{UserID: &developer.id}, {DeployKeyID: &key.ID}},
			MergeAccessLevel:   gitlab.Ptr(gitlab.MaintainerPermissions),
			AllowedToMerge:     &[]*gitlab.BranchPermissionOptions{{GroupID: &team.group.ID}},
			AllowedToUnprotect: &[]*gitlab.BranchPermissionOptions{{AccessLevel: gitlab.Ptr(gitlab.AdminPermissions)}},
		})
		Expect(levels(made.PushAccessLevels)).To(Equal(of(
			gitlab.BranchAccessDescription{UserID: developer.id, AccessLevelDescription: "Called developer"},
			gitlab.BranchAccessDescription{DeployKeyID: key.ID, AccessLevel: gitlab.MaintainerPermissions, AccessLevelDescription: "Robot"},
		)))
		Expect(levels(made.MergeAccessLevels)).To(Equal(of(
			maintainers, gitlab.BranchAccessDescription{GroupID: team.group.ID, AccessLevelDescription: team.group.Name},
		)))
		Expect(levels(made.UnprotectAccessLevels)).To(Equal(of(admins)))
	})

	It("are changed record by record, and the remaining records keep their ids", d.again(), func() {
		made := protect(team.project.ID, &gitlab.ProtectRepositoryBranchesOptions{
			Name: gitlab.Ptr("main"), PushAccessLevel: gitlab.Ptr(gitlab.MaintainerPermissions),
			AllowedToPush: &[]*gitlab.BranchPermissionOptions{{UserID: &developer.id}},
		})
		role, user := made.PushAccessLevels[0], made.PushAccessLevels[1]
		changed, r, err := d.as(maintainer).ProtectedBranches.UpdateProtectedBranch(team.project.PathWithNamespace, "main", &gitlab.UpdateProtectedBranchOptions{
			AllowForcePush: gitlab.Ptr(true), CodeOwnerApprovalRequired: gitlab.Ptr(true),
			AllowedToPush: &[]*gitlab.BranchPermissionOptions{
				{ID: &role.ID, AccessLevel: gitlab.Ptr(gitlab.DeveloperPermissions)}, {ID: &user.ID, Destroy: gitlab.Ptr(true)}, {UserID: &owner.id},
			},
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(200))
		Expect(changed.ID).To(Equal(made.ID))
		Expect(changed.AllowForcePush).To(BeTrue())
		Expect(changed.CodeOwnerApprovalRequired).To(BeTrue())
		Expect(levels(changed.PushAccessLevels)).To(Equal(of(
			developers, gitlab.BranchAccessDescription{UserID: owner.id, AccessLevelDescription: "Called owner"},
		)))
		Expect(changed.PushAccessLevels[0].ID).To(Equal(role.ID))
		Expect(changed.PushAccessLevels[1].ID).NotTo(BeElementOf(role.ID, user.ID))
		Expect(changed.MergeAccessLevels).To(Equal(made.MergeAccessLevels))
		Expect(changed.UnprotectAccessLevels).To(Equal(made.UnprotectAccessLevels))
		got, _, err := d.as(maintainer).ProtectedBranches.GetProtectedBranch(team.project.ID, "main")
		Expect(err).NotTo(HaveOccurred())
		Expect(got).To(Equal(changed))
	})

	It("have an empty set when the last record of a set is removed", func() {
		made := protect(team.project.ID, &gitlab.ProtectRepositoryBranchesOptions{Name: gitlab.Ptr("main")})
		changed, _, err := d.as(maintainer).ProtectedBranches.UpdateProtectedBranch(team.project.ID, "main", &gitlab.UpdateProtectedBranchOptions{
			AllowedToPush: &[]*gitlab.BranchPermissionOptions{{ID: &made.PushAccessLevels[0].ID, Destroy: gitlab.Ptr(true)}},
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(changed.PushAccessLevels).To(BeEmpty())
		got, _, err := d.as(maintainer).ProtectedBranches.GetProtectedBranch(team.project.ID, "main")
		Expect(err).NotTo(HaveOccurred())
		Expect(got.PushAccessLevels).To(BeEmpty())
	})

	It("can be changed and removed by those whom their unprotect levels let through", func() {
		protect(team.project.ID, &gitlab.ProtectRepositoryBranchesOptions{Name: gitlab.Ptr("main"), UnprotectAccessLevel: gitlab.Ptr(gitlab.AdminPermissions)})
		_, r, err := d.as(owner).ProtectedBranches.UpdateProtectedBranch(team.project.ID, "main", &gitlab.UpdateProtectedBranchOptions{})
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`403 {"message":"403 Forbidden"}`))
		r, err = d.as(owner).ProtectedBranches.UnprotectRepositoryBranches(team.project.ID, "main")
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`403 {"message":"403 Forbidden"}`))
		_, err = d.as(root).ProtectedBranches.UnprotectRepositoryBranches(team.project.ID, "main")
		Expect(err).NotTo(HaveOccurred())
	})

	It("are created once, whether or not the project already protects its default branch", d.again(), func() {
		protect(team.project.ID, &gitlab.ProtectRepositoryBranchesOptions{Name: gitlab.Ptr("main"), PushAccessLevel: gitlab.Ptr(gitlab.NoPermissions)})
		_, r, err := d.as(maintainer).ProtectedBranches.ProtectRepositoryBranches(team.project.ID, &gitlab.ProtectRepositoryBranchesOptions{Name: gitlab.Ptr("main")})
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`409 {"message":"Protected branch 'main' already exists"}`))

		other := d.newProject(team.group.ID, gitlab.PrivateVisibility)
		_, _, err = d.as(maintainer).Commits.CreateCommit(other.ID, &gitlab.CreateCommitOptions{
			Branch: gitlab.Ptr("main"), CommitMessage: gitlab.Ptr("Begin"), Actions: []*gitlab.CommitActionOptions{{
				Action: gitlab.Ptr(gitlab.FileCreate), FilePath: gitlab.Ptr("README.md"), Content: gitlab.Ptr("Begun.\n"),
			}},
		})
		Expect(err).NotTo(HaveOccurred())
		Eventually(func(g Gomega) {
			_, _, err := d.as(maintainer).ProtectedBranches.GetProtectedBranch(other.ID, "main")
			g.Expect(err).NotTo(HaveOccurred())
		}).WithPolling(polling).Should(Succeed())
		made := protect(other.ID, &gitlab.ProtectRepositoryBranchesOptions{Name: gitlab.Ptr("main"), PushAccessLevel: gitlab.Ptr(gitlab.NoPermissions)})
		Expect(levels(made.PushAccessLevels)).To(Equal(of(noOne)))
	})

	It("are found by part of a name, and removed", d.again(), func() {
		for _, name := range []string{"main", "Release/*", "release-1"} {
			protect(team.project.ID, &gitlab.ProtectRepositoryBranchesOptions{Name: &name})
		}
		c := d.as(maintainer).ProtectedBranches
		found, _, err := c.ListProtectedBranches(team.project.PathWithNamespace, &gitlab.ListProtectedBranchesOptions{Search: gitlab.Ptr("ELEASE")})
		Expect(err).NotTo(HaveOccurred())
		Expect(found).To(HaveExactElements(HaveField("Name", "Release/*"), HaveField("Name", "release-1")))
		r, err := c.UnprotectRepositoryBranches(team.project.PathWithNamespace, "Release/*")
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("204"))
		r, err = c.UnprotectRepositoryBranches(team.project.PathWithNamespace, "Release/*")
		Expect(err).To(MatchError(gitlab.ErrNotFound))
		Expect(answered(r)).To(Equal(`404 {"message":"404 Not found"}`))
		left, _, err := c.ListProtectedBranches(team.project.ID, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(left).To(HaveLen(2))
	})

	It("are not removed if they have changed since the client read them", d.again(), func() {
		protect(team.project.ID, &gitlab.ProtectRepositoryBranchesOptions{Name: gitlab.Ptr("main")})
		c := d.as(maintainer).ProtectedBranches
		r, err := c.UnprotectRepositoryBranches(team.project.ID, "main", gitlab.WithHeader("If-Unmodified-Since", "Thu, 01 Jan 2015 00:00:00 GMT"))
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`412 {"message":"412 Precondition Failed"}`))
		r, err = c.UnprotectRepositoryBranches(team.project.ID, "main", gitlab.WithHeader("If-Unmodified-Since", "Thu, 01 Jan 2099 00:00:00 GMT"))
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("204"))
	})

	It("are inherited from the groups above, and changed in these", d.again(), func() {
		var group v1alpha1.GroupList
		Expect(api.List(context.Background(), &group)).To(Succeed())
		for _, g := range group.Items {
			if g.Spec.ID == team.group.ID {
				Expect(api.Create(context.Background(), &v1alpha1.ProtectedBranch{
					ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: fresh("rule")},
					Spec:       v1alpha1.ProtectedBranchSpec{GroupRef: &v1alpha1.Reference{Name: g.Name}, Branch: "stable/*"},
				})).To(Succeed())
			}
		}
		c := d.as(maintainer).ProtectedBranches
		Eventually(func(g Gomega) {
			all, r, err := c.ListProtectedBranches(team.project.PathWithNamespace, nil)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(all).To(ContainElement(And(HaveField("Name", "stable/*"), HaveField("ID", Not(BeZero())),
				HaveField("PushAccessLevels", ContainElement(HaveField("AccessLevel", gitlab.MaintainerPermissions))))))
			g.Expect(answered(r)).To(ContainSubstring(`"inherited":true`))
		}).WithPolling(polling).Should(Succeed())
		r, err := c.UnprotectRepositoryBranches(team.project.ID, "stable/*")
		Expect(err).To(MatchError(gitlab.ErrNotFound))
		Expect(answered(r)).To(Equal(`404 {"message":"404 Not found"}`))
	})
})
