package conformance

import (
	"crypto/ed25519"
	"crypto/rand"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
	"golang.org/x/crypto/ssh"
)

// newKey returns a public key as in authorized_keys, without a comment.
func newKey() ssh.PublicKey {
	GinkgoHelper()
	public, _, err := ed25519.GenerateKey(rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	key, err := ssh.NewPublicKey(public)
	Expect(err).NotTo(HaveOccurred())
	return key
}

// line is a key in the form of authorized_keys.
func line(key ssh.PublicKey) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

// newDeployKey adds a key to a project.
func (d *door) newDeployKey(project int64, title string, push bool) *gitlab.ProjectDeployKey {
	GinkgoHelper()
	k, _, err := d.as(root).DeployKeys.AddDeployKey(project, &gitlab.AddDeployKeyOptions{
		Title: &title, Key: gitlab.Ptr(line(newKey()) + " somebody@somewhere"), CanPush: &push,
	})
	Expect(err).NotTo(HaveOccurred())
	return k
}

var _ = throughEachDoor("Deploy keys", func(d *door) {
	It("are added, read, changed and removed", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		c := d.as(maintainer).DeployKeys
		for _, id := range []any{team.project.ID, team.project.PathWithNamespace} {
			key := newKey()
			text := line(key) + " somebody@somewhere"
			made, r, err := c.AddDeployKey(id, &gitlab.AddDeployKeyOptions{
				Title: gitlab.Ptr("Bauknecht 50% + ½"), Key: &text, CanPush: gitlab.Ptr(true),
			})
			Expect(err).NotTo(HaveOccurred())
			Expect(r.StatusCode).To(Equal(201))
			Expect(made.Title).To(Equal("Bauknecht 50% + ½"))
			Expect(made.Key).To(Equal(text))
			Expect(made.Fingerprint).To(Equal(ssh.FingerprintLegacyMD5(key)))
			Expect(made.FingerprintSHA256).To(Equal(ssh.FingerprintSHA256(key)))
			Expect(made.CanPush).To(BeTrue())
			Expect(made.CreatedAt.IsZero()).To(BeFalse())
			Expect(made.ExpiresAt).To(BeNil())

			got, _, err := c.GetDeployKey(id, made.ID)
			Expect(err).NotTo(HaveOccurred())
			Expect(got).To(Equal(made))
			again, _, err := c.AddDeployKey(id, &gitlab.AddDeployKeyOptions{Title: gitlab.Ptr("Again"), Key: &text})
			Expect(err).NotTo(HaveOccurred())
			Expect(again).To(Equal(made))
			changed, _, err := c.UpdateDeployKey(id, made.ID, &gitlab.UpdateDeployKeyOptions{Title: gitlab.Ptr("Neu"), CanPush: gitlab.Ptr(false)})
			Expect(err).NotTo(HaveOccurred())
			Expect(changed.Title).To(Equal("Neu"))
			Expect(changed.CanPush).To(BeFalse())
			listed, _, err := c.ListProjectDeployKeys(id, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(listed).To(HaveExactElements(Equal(changed)))

			r, err = c.DeleteDeployKey(id, made.ID)
			Expect(err).NotTo(HaveOccurred())
			Expect(answered(r)).To(Equal("204"))
			_, r, err = c.GetDeployKey(id, made.ID)
			Expect(err).To(MatchError(gitlab.ErrNotFound))
			Expect(answered(r)).To(Equal(`404 {"message":"404 Not found"}`))
			r, err = c.DeleteDeployKey(id, made.ID)
			Expect(err).To(MatchError(gitlab.ErrNotFound))
			Expect(answered(r)).To(Equal(`404 {"message":"404 Deploy Key Not Found"}`))
		}
	})

	It("can be enabled in another project of the same members", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		other := d.newProject(team.group.ID, gitlab.PrivateVisibility)
		key := d.newDeployKey(team.project.ID, "Shared", true)
		enabled, r, err := d.as(maintainer).DeployKeys.EnableDeployKey(other.PathWithNamespace, key.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(201))
		Expect(enabled.Title).To(Equal("Shared"))
		Expect(enabled.FingerprintSHA256).To(Equal(key.FingerprintSHA256))
		Expect(enabled.CanPush).To(BeFalse())
		_, r, err = d.as(maintainer).DeployKeys.EnableDeployKey(other.ID, 1<<50)
		Expect(err).To(MatchError(gitlab.ErrNotFound))
		Expect(answered(r)).To(Equal(`404 {"message":"404 Deploy Key Not Found"}`))
	})

	It("are listed across all projects for administrators, with their projects", d.again(), func() {
		p := d.newTeam(gitlab.PrivateVisibility).project
		reading, writing := d.newDeployKey(p.ID, "Reading", false), d.newDeployKey(p.ID, "Writing", true)
		all, err := gitlab.ScanAndCollect(func(page gitlab.PaginationOptionFunc) ([]*gitlab.InstanceDeployKey, *gitlab.Response, error) {
			return d.as(root).DeployKeys.ListAllDeployKeys(nil, page)
		})
		Expect(err).NotTo(HaveOccurred())
		is := HaveExactElements(HaveField("PathWithNamespace", p.PathWithNamespace))
		Expect(all).To(ContainElement(And(HaveField("ID", reading.ID), HaveField("ProjectsWithReadonlyAccess", is), HaveField("ProjectsWithWriteAccess", BeEmpty()))))
		Expect(all).To(ContainElement(And(HaveField("ID", writing.ID), HaveField("ProjectsWithWriteAccess", is), HaveField("ProjectsWithReadonlyAccess", BeEmpty()))))
		public, _, err := d.as(root).DeployKeys.ListAllDeployKeys(&gitlab.ListInstanceDeployKeysOptions{Public: gitlab.Ptr(true)})
		Expect(err).NotTo(HaveOccurred())
		Expect(public).To(BeEmpty())
	})
})
