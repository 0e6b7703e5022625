package tenancy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/change"
	"github.com/forgeplane/forgeplane/internal/egress"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/test/controlplane"
	"github.com/forgeplane/forgeplane/test/forge"
	"github.com/forgeplane/forgeplane/test/rest"
)

// readers send requests to a server of the installation, over REST and Git, as an administrator.
type readers struct {
	forge    *forge.Forge
	api      rest.Client
	address  string
	password string
	// marked are the projects whose repository has a branch that is named by their UID.
	marked map[types.UID]bool
}

// newReaders starts a server, which stops with the spec.
func newReaders(ctx context.Context, f *forge.Forge) readers {
	GinkgoHelper()
	token := forge.AccessToken("root").For(forge.User("root").Build()).Build()
	f.Create(forge.User("root").Admin().Build(), token)
	f.ExpectReady(token)
	r := readers{forge: f, password: secretOf(f, "root"), marked: map[types.UID]bool{}}

	port, err := controlplane.FreePort(ctx)
	Expect(err).NotTo(HaveOccurred())
	host := fmt.Sprintf("127.0.0.1:%d", port)
	r.address = "http://" + host
	external, err := url.Parse(r.address)
	Expect(err).NotTo(HaveOccurred())
	targets, err := egress.Parse(nil)
	Expect(err).NotTo(HaveOccurred())
	program, err := os.Executable() // there are no pushes, so no hook is called
	Expect(err).NotTo(HaveOccurred())
	server, err := apiserver.New(ctx, apiserver.Options{
		Kit: family.Kit{
			Catalog: f.Catalog, Repositories: f.Repositories, Activity: familytest.Activity(GinkgoTB(), f.Clock), Targets: targets, Clock: f.Clock,
			Version: "test", Namespace: forge.PlatformNamespace, Home: forge.PlatformNamespace,
		},
		Address: host, RuntimeDir: GinkgoT().TempDir(), HookBinary: program, ExternalURL: external,
		Client: f.Live(), Live: f.Live(), IDs: f.IDs, Log: logr.Discard(), Written: func(change.Event) {},
	})
	Expect(err).NotTo(HaveOccurred())
	serving, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(serving) }()
	DeferCleanup(func() {
		stop()
		Eventually(ended).Should(Receive(Succeed()))
	})
	r.api = rest.WithToken(r.address, r.password)
	Eventually(func() error {
		_, err := r.api.Try("GET /version", "")
		return err
	}).Should(Succeed())
	return r
}

// expect expects that all readers find an object at the place in its status, and only there.
func (r readers) expect(ctx context.Context, obj v1alpha1.Object, story func() string) {
	GinkgoHelper()
	switch o := obj.(type) {
	case *v1alpha1.Group:
		r.expectAt(o, "groups", o.Status.FullPath, o.Status.ID, story)
	case *v1alpha1.Project:
		r.expectAt(o, "projects", o.Status.FullPath, o.Status.ID, story)
		if o.Status.FullPath != "" && frame.InForce(o) {
			r.expectRepository(ctx, o, story)
		}
	}
}

func (r readers) expectAt(obj v1alpha1.Object, collection, fullPath string, id int64, story func() string) {
	GinkgoHelper()
	// An object that is being deleted holds its place, and is not served over REST.
	if !obj.GetDeletionTimestamp().IsZero() || id == 0 {
		return
	}
	if fullPath == "" {
		Eventually(r.api.Status).WithArguments(fmt.Sprintf("GET /%s/%d", collection, id)).
			Should(Equal(http.StatusNotFound), func() string { return fmt.Sprintf("%s %s holds no path:\n%s", collection, obj.GetName(), story()) })
		return
	}
	Eventually(func() (int64, error) {
		answer, err := r.api.Try(fmt.Sprintf("GET /%s/%s", collection, url.PathEscape(fullPath)), "")
		if err != nil || answer.Status != http.StatusOK {
			return 0, fmt.Errorf("%s: %w", answer, err)
		}
		var shown struct{ ID int64 }
		err = json.Unmarshal([]byte(answer.Body), &shown)
		return shown.ID, err
	}).Should(Equal(id), func() string { return fmt.Sprintf("the holder of %s over REST:\n%s", fullPath, story()) })
	Eventually(r.forge.Catalog.ByPath).WithArguments(GinkgoT().Context(), fullPath).
		Should(HaveField("UID", obj.GetUID()), story)
}

// expectRepository expects that Git serves the repository of a project at its full path.
func (r readers) expectRepository(ctx context.Context, p *v1alpha1.Project, story func() string) {
	GinkgoHelper()
	branch := "refs/heads/of-" + string(p.UID)
	if !r.marked[p.UID] {
		r.mark(ctx, p, branch)
		r.marked[p.UID] = true
	}
	Eventually(func() (string, error) { return r.refs(ctx, p.Status.FullPath) }).
		Should(ContainSubstring(branch), func() string {
			return fmt.Sprintf("whose repository is at %s:\n%s", p.Status.FullPath, story())
		})
}

// mark creates a branch in the repository of a project.
func (r readers) mark(ctx context.Context, p *v1alpha1.Project, branch string) {
	GinkgoHelper()
	repo, err := r.forge.Repositories.Of(ctx, p)
	Expect(err).NotTo(HaveOccurred())
	const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
	commit := exec.CommandContext(ctx, "git", "-C", repo.Dir(), "-c", "user.name=t", "-c", "user.email=t@example.com", "commit-tree", "-m", "mark", emptyTree)
	hash, err := commit.Output()
	Expect(err).NotTo(HaveOccurred())
	Expect(exec.CommandContext(ctx, "git", "-C", repo.Dir(), "update-ref", branch, string(hash[:40])).Run()).To(Succeed())
}

// refs returns the refs that Git receives from a repository when it fetches.
func (r readers) refs(ctx context.Context, fullPath string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.address+"/"+fullPath+".git/info/refs?service=git-upload-pack", http.NoBody)
	if err != nil {
		return "", err
	}
	request.SetBasicAuth("root", r.password)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}
