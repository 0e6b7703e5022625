package conformance

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"io"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
)

// picture returns a PNG of a width.
func picture(width int) *bytes.Reader {
	GinkgoHelper()
	var text bytes.Buffer
	Expect(png.Encode(&text, image.NewNRGBA(image.Rect(0, 0, width, 3)))).To(Succeed())
	return bytes.NewReader(text.Bytes())
}

// widthOf returns the width of a PNG.
func widthOf(text io.Reader) int {
	GinkgoHelper()
	config, err := png.DecodeConfig(text)
	Expect(err).NotTo(HaveOccurred())
	return config.Width
}

// fetch requests an address at Forgeplane's own listener with a token.
func fetch(url, token string) *http.Response {
	GinkgoHelper()
	request, err := http.NewRequest(http.MethodGet, url, http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	if token != "" {
		request.Header.Set("PRIVATE-TOKEN", token)
	}
	r, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(r.Body.Close)
	return r
}

var _ = throughEachDoor("Avatars", func(d *door) {
	It("of projects are uploaded, served to those who see the project, and removed", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		c := d.as(maintainer).Projects
		changed, _, err := c.UploadAvatar(team.project.ID, picture(11), "avatar.png")
		Expect(err).NotTo(HaveOccurred())
		Expect(changed.AvatarURL).To(HavePrefix(own.url + "/uploads/-/system/project/avatar/"))
		got, _, err := d.as(guest).Projects.DownloadAvatar(team.project.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(widthOf(got)).To(Equal(11))
		_, r, err := d.as(outsider).Projects.DownloadAvatar(team.project.ID)
		Expect(err).To(MatchError(gitlab.ErrNotFound))
		Expect(answered(r)).To(Equal(`404 {"message":"404 Project Not Found"}`))

		By("its address")
		served := fetch(changed.AvatarURL, guest.token)
		Expect(served.StatusCode).To(Equal(http.StatusOK))
		Expect(served.Header.Get("Content-Type")).To(Equal("image/png"))
		Expect(served.Header.Get("X-Content-Type-Options")).To(Equal("nosniff"))
		Expect(widthOf(served.Body)).To(Equal(11))
		Expect(fetch(changed.AvatarURL, outsider.token).StatusCode).To(Equal(http.StatusNotFound))
		Expect(fetch(changed.AvatarURL, "").StatusCode).To(Equal(http.StatusNotFound))

		By("removal")
		changed, _, err = c.EditProject(team.project.ID, &gitlab.EditProjectOptions{Avatar: &gitlab.ProjectAvatar{}})
		Expect(err).NotTo(HaveOccurred())
		Expect(changed.AvatarURL).To(BeEmpty())
		_, r, err = c.DownloadAvatar(team.project.ID)
		Expect(err).To(MatchError(gitlab.ErrNotFound))
		Expect(answered(r)).To(Equal(`404 {"message":"404 Avatar Not Found"}`))
	})

	It("go with new projects, groups and users", d.again(), func() {
		name := fresh("pictured")
		g, _, err := d.as(root).Groups.CreateGroup(&gitlab.CreateGroupOptions{
			Name: &name, Path: &name, Avatar: &gitlab.GroupAvatar{Filename: "a.png", Image: picture(4)},
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(g.AvatarURL).NotTo(BeEmpty())
		p, _, err := d.as(root).Projects.CreateProject(&gitlab.CreateProjectOptions{
			Name: &name, NamespaceID: &g.ID, Avatar: &gitlab.ProjectAvatar{Filename: "a.png", Image: picture(5)},
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(p.AvatarURL).NotTo(BeEmpty())
		Expect(p.Namespace.AvatarURL).To(Equal(g.AvatarURL))
		username := fresh("pictured") // the path of a root group is taken
		u, _, err := d.as(root).Users.CreateUser(&gitlab.CreateUserOptions{
			Name: &name, Username: &username, Email: gitlab.Ptr(username + "@example.com"), Password: gitlab.Ptr("Unused-and-long-1"),
			Avatar: &gitlab.UserAvatar{Filename: "a.png", Image: picture(6)},
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(u.AvatarURL).NotTo(BeEmpty())
		Expect(widthOf(fetch(u.AvatarURL, guest.token).Body)).To(Equal(6))
		Expect(fetch(u.AvatarURL, "").StatusCode).To(Equal(http.StatusUnauthorized))
	})

	It("of groups and users are uploaded and removed", func() {
		team := d.newTeam(gitlab.PublicVisibility)
		g, _, err := d.as(owner).Groups.UploadAvatar(team.group.ID, picture(7), "avatar.png")
		Expect(err).NotTo(HaveOccurred())
		Expect(g.AvatarURL).NotTo(BeEmpty())
		got, _, err := d.as(nobody).Groups.DownloadAvatar(team.group.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(widthOf(got)).To(Equal(7))
		g, _, err = d.as(owner).Groups.UpdateGroup(team.group.ID, &gitlab.UpdateGroupOptions{Avatar: &gitlab.GroupAvatar{}})
		Expect(err).NotTo(HaveOccurred())
		Expect(g.AvatarURL).To(BeEmpty())

		u, _, err := d.as(guest).Users.UploadAvatar(picture(8), "avatar.png")
		Expect(err).NotTo(HaveOccurred())
		Expect(u.AvatarURL).NotTo(BeEmpty())
		current, _, err := d.as(guest).Users.CurrentUser()
		Expect(err).NotTo(HaveOccurred())
		Expect(current.AvatarURL).To(Equal(u.AvatarURL))
		r := send(d.as(outsider), "GET users/"+fmt.Sprint(guest.id)+"/avatar", "")
		Expect(r.StatusCode).To(Equal(http.StatusOK))
		_, _, err = d.as(root).Users.ModifyUser(guest.id, &gitlab.ModifyUserOptions{Avatar: &gitlab.UserAvatar{}})
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(send(d.as(guest), "GET users/"+fmt.Sprint(guest.id)+"/avatar", ""))).To(Equal(`404 {"message":"404 Avatar Not Found"}`))
	})

	It("are refused unless they are pictures", d.again(), func() {
		team := d.newTeam(gitlab.PublicVisibility)
		_, r, err := d.as(maintainer).Projects.UploadAvatar(team.project.ID, bytes.NewReader([]byte(`<svg xmlns="http://www.w3.org/2000/svg"/>`)), "avatar.png")
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(HavePrefix(`400 {"message":{"avatar":["file format is not supported.`))
	})
})
