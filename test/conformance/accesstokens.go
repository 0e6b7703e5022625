package conformance

import (
	"encoding/json"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/credential"
)

const (
	revoked = `401 {"error":"invalid_token","error_description":"Token was revoked. You have to re-authorize from the user."}`
	expired = `401 {"error":"invalid_token","error_description":"Token is expired. You can either do re-authorization or token refresh."}`
)

// newToken creates an access token for a user.
func (d *door) newToken(user int64, scopes ...string) *gitlab.PersonalAccessToken {
	GinkgoHelper()
	t, _, err := d.as(root).Users.CreatePersonalAccessToken(user, &gitlab.CreatePersonalAccessTokenOptions{
		Name: gitlab.Ptr(fresh("token")), Scopes: &scopes,
	})
	Expect(err).NotTo(HaveOccurred())
	return t
}

// day is the date a number of days from now.
func day(away int) gitlab.ISOTime {
	return gitlab.ISOTime(time.Now().UTC().AddDate(0, 0, away).Truncate(24 * time.Hour))
}

var _ = throughEachDoor("Personal access tokens", func(d *door) {
	It("are created for a user, and are accepted at once", func() {
		expires := day(30)
		made, _, err := d.as(root).Users.CreatePersonalAccessToken(developer.id, &gitlab.CreatePersonalAccessTokenOptions{
			Name: gitlab.Ptr("CI + Früchte / 50%"), Scopes: &[]string{"read_api", "read_user"}, ExpiresAt: &expires,
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(made.ID).NotTo(BeZero())
		Expect(made.Name).To(Equal("CI + Früchte / 50%"))
		Expect(made.Scopes).To(Equal([]string{"read_api", "read_user"}))
		Expect(made.UserID).To(Equal(developer.id))
		Expect(made.Active).To(BeTrue())
		Expect(made.Revoked).To(BeFalse())
		Expect(made.ExpiresAt).To(Equal(&expires))
		Expect(made.CreatedAt.IsZero()).To(BeFalse())

		me, _, err := d.with(made.Token).Users.CurrentUser()
		Expect(err).NotTo(HaveOccurred())
		Expect(me.ID).To(Equal(developer.id))

		got, _, err := d.as(developer).PersonalAccessTokens.GetSinglePersonalAccessTokenByID(made.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Token).To(BeEmpty())
		got.Token, got.LastUsedAt = made.Token, nil
		Expect(got).To(Equal(made))
		Eventually(func() *time.Time {
			got, _, err := d.as(developer).PersonalAccessTokens.GetSinglePersonalAccessTokenByID(made.ID)
			Expect(err).NotTo(HaveOccurred())
			return got.LastUsedAt
		}).WithPolling(polling).Should(HaveValue(BeTemporally("~", time.Now(), time.Minute)))
	})

	It("have values that no object of the cluster contains", d.again(), func(ctx SpecContext) {
		made := d.newToken(developer.id, "read_user")
		rotated, _, err := d.as(root).PersonalAccessTokens.RotatePersonalAccessTokenByID(made.ID, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(send(d.with(rotated.Token), "GET user", ""))).To(HavePrefix("200"))

		var secrets corev1.SecretList
		Expect(api.List(ctx, &secrets)).To(Succeed())
		Expect(secrets.Items).NotTo(BeEmpty())
		for _, s := range secrets.Items {
			for key, value := range s.Data {
				Expect(string(value)).NotTo(Or(ContainSubstring(made.Token), ContainSubstring(rotated.Token)), "%s/%s: %s", s.Namespace, s.Name, key)
			}
		}
		var tokens v1alpha1.AccessTokenList
		Expect(api.List(ctx, &tokens)).To(Succeed())
		text, err := json.Marshal(tokens.Items)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(text)).To(And(ContainSubstring(credential.Digest(rotated.Token)),
			Not(ContainSubstring(made.Token)), Not(ContainSubstring(rotated.Token))))
	})

	It("are listed by user, state and name", d.again(), func() {
		u := d.newUser(fresh("tokens"))
		first, second := d.newToken(u.ID, "api"), d.newToken(u.ID, "api")
		_, err := d.as(root).PersonalAccessTokens.RevokePersonalAccessTokenByID(first.ID)
		Expect(err).NotTo(HaveOccurred())
		ids := func(c *gitlab.Client, o *gitlab.ListPersonalAccessTokensOptions) (all []int64) {
			GinkgoHelper()
			list, _, err := c.PersonalAccessTokens.ListPersonalAccessTokens(o)
			Expect(err).NotTo(HaveOccurred())
			for _, t := range list {
				all = append(all, t.ID)
			}
			return all
		}
		c := d.as(root)
		Expect(ids(c, &gitlab.ListPersonalAccessTokensOptions{UserID: &u.ID})).To(Equal([]int64{first.ID, second.ID}))
		Expect(ids(c, &gitlab.ListPersonalAccessTokensOptions{UserID: &u.ID, Sort: gitlab.Ptr("created_desc")})).To(HaveLen(2))
		Expect(ids(c, &gitlab.ListPersonalAccessTokensOptions{UserID: &u.ID, State: gitlab.Ptr("active")})).To(Equal([]int64{second.ID}))
		Expect(ids(c, &gitlab.ListPersonalAccessTokensOptions{UserID: &u.ID, Revoked: gitlab.Ptr(true)})).To(Equal([]int64{first.ID}))
		Expect(ids(c, &gitlab.ListPersonalAccessTokensOptions{Search: &second.Name})).To(Equal([]int64{second.ID}))
		Expect(ids(d.with(second.Token), nil)).To(Equal([]int64{first.ID, second.ID}))
	})

	It("are rotated and revoked by id", func() {
		c := d.as(root).PersonalAccessTokens
		old := d.newToken(developer.id, "read_user")
		expires := day(10)
		rotated, r, err := c.RotatePersonalAccessTokenByID(old.ID, &gitlab.RotatePersonalAccessTokenOptions{ExpiresAt: &expires})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(200))
		Expect(rotated.ID).NotTo(Equal(old.ID))
		Expect(rotated.Scopes).To(Equal(old.Scopes))
		Expect(rotated.ExpiresAt).To(Equal(&expires))
		Expect(answered(send(d.with(old.Token), "GET user", ""))).To(Equal(revoked))
		Expect(answered(send(d.with(rotated.Token), "GET user", ""))).To(HavePrefix("200"))

		r, err = c.RevokePersonalAccessTokenByID(rotated.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("204"))
		Expect(answered(send(d.with(rotated.Token), "GET user", ""))).To(Equal(revoked))
		got, _, err := c.GetSinglePersonalAccessTokenByID(rotated.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Revoked).To(BeTrue())
		Expect(got.Active).To(BeFalse())
		_, r, err = c.RotatePersonalAccessTokenByID(old.ID, nil)
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`400 {"message":"400 Bad request - token already revoked"}`))
	})
})

var _ = withTokens("The token that a request is made with", func(d *door) {
	It("is read, rotated and revoked as self", func() {
		made := d.newToken(developer.id, "api")
		self, _, err := d.with(made.Token).PersonalAccessTokens.GetSinglePersonalAccessToken()
		Expect(err).NotTo(HaveOccurred())
		Expect(self.ID).To(Equal(made.ID))
		Expect(self.Name).To(Equal(made.Name))

		rotated, r, err := d.with(made.Token).PersonalAccessTokens.RotatePersonalAccessTokenSelf(nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(200))
		Expect(answered(send(d.with(made.Token), "GET personal_access_tokens/self", ""))).To(Equal(revoked))

		r, err = d.with(rotated.Token).PersonalAccessTokens.RevokePersonalAccessTokenSelf()
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("204"))
		Expect(answered(send(d.with(rotated.Token), "GET personal_access_tokens/self", ""))).To(Equal(revoked))
	})
})
