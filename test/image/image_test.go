package image_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/forgeplane"
	"github.com/forgeplane/forgeplane/test/installation"
	"github.com/forgeplane/forgeplane/test/patience"
	"github.com/forgeplane/forgeplane/test/process"
	"github.com/forgeplane/forgeplane/test/suite"
)

var _ = Describe("The image", Ordered, suite.Soak, func() {
	BeforeAll(prepare)

	It("is the same in another build", func() {
		shell.Do("make", "image", "OUT=.dev/again")
		digest, err := image.Digest()
		Expect(err).NotTo(HaveOccurred())
		Expect(imageIn("again").Digest()).To(Equal(digest))
		for _, file := range []string{"oci/index.json", "forgeplane-" + runtime.GOARCH + ".cdx.json"} {
			Expect(shell.Do("cmp", ".dev/image/"+file, ".dev/again/"+file)).To(BeEmpty())
		}
	})

	It("is small", func() {
		manifest, err := image.Manifest()
		Expect(err).NotTo(HaveOccurred())
		var size int64
		for _, l := range manifest.Layers {
			size += l.Size
		}
		Expect(size).To(BeNumerically("<", 120_000_000))
	})

	It("runs as a user without rights, and writes only to /tmp and its data", func() {
		data := GinkgoT().TempDir()
		version := shell.Do("cat", "cmd/forgeplane/VERSION")
		Expect(shell.Do("unshare", inImage(data, "forgeplane", "--version")...)).
			To(Equal("forgeplane version " + version + "+" + shell.Git("rev-parse", "--short=12", "HEAD")))
		Expect(shell.Do("unshare", inImage(data, "git", "--version")...)).To(HavePrefix("git version 2."))
		Expect(shell.Do("unshare", inImage(data, "sh", "-c", `(: > /x) 2>&1 || :; : > /tmp/x; echo "$PATH"`)...)).To(And(ContainSubstring("Read-only file system"), HaveSuffix("/usr/bin")))
		Expect(shell.Fail("unshare", inImage(data, "git", "ls-remote", "https://127.0.0.1:1/x")...)).
			To(ContainSubstring("Failed to connect to 127.0.0.1"), "git has its program for https")
	})

	It("serves a registry, to which it and the chart are pushed", func(ctx context.Context) {
		registry, token := serve()
		login := []string{"registry", "login", registry, "--plain-http", "--username=root", "--password-stdin"}
		Expect(os.MkdirAll(shell.Getenv("DOCKER_CONFIG"), 0o700)).To(Succeed())
		settings := "--registry-config=" + filepath.Join(shell.Getenv("DOCKER_CONFIG"), "config.json")
		shell.DoWith(token, "helm", append(login, settings)...)

		By("pushing the image and pulling it by its digest")
		said := shell.Do("make", "image", "OUT=.dev/image", "PUSH=1", "IMAGE="+registry+"/acme/website/forgeplane:tried")
		pushed := regexp.MustCompile(`pushed \S+(@sha256:[0-9a-f]{64})`).FindStringSubmatch(said)
		Expect(pushed).To(HaveLen(2), said)
		reference, err := name.NewDigest(registry + "/acme/website/forgeplane" + pushed[1])
		Expect(err).NotTo(HaveOccurred())
		pulled, err := remote.Image(reference, remote.WithAuth(&authn.Basic{Username: "root", Password: token}), remote.WithContext(ctx))
		Expect(err).NotTo(HaveOccurred())
		digest, err := image.Digest()
		Expect(err).NotTo(HaveOccurred())
		Expect(pulled.Digest()).To(Equal(digest))

		By("pushing the chart and pulling it by its digest")
		shell.Do("helm", "package", "charts/forgeplane", "--destination=.dev")
		archive := "forgeplane-" + shell.Do("cat", "cmd/forgeplane/VERSION") + ".tgz"
		said, err = shell.Try("helm", "push", ".dev/"+archive, "oci://"+registry+"/acme/website", "--plain-http", settings)
		Expect(err).NotTo(HaveOccurred())
		chart := regexp.MustCompile(`sha256:[0-9a-f]{64}`).FindString(said)
		Expect(chart).NotTo(BeEmpty(), said)
		pulledTo := filepath.Join(checkout.Data(), "pulled")
		Expect(os.Mkdir(pulledTo, 0o700)).To(Succeed())
		shell.Do("helm", "pull", "oci://"+registry+"/acme/website/forgeplane@"+chart, "--plain-http", settings, "--destination="+pulledTo)
		files, err := filepath.Glob(filepath.Join(pulledTo, "forgeplane*.tgz"))
		Expect(err).NotTo(HaveOccurred())
		Expect(files).To(HaveLen(1))
		shell.Do("cmp", ".dev/"+archive, files[0])
	})
})

// objects are an administrator and a project, on a storage at a path.
const objects = `
apiVersion: v1
kind: Namespace
metadata: {name: acme}
---
apiVersion: forgeplane.dev/v1alpha1
kind: RepositoryStorage
metadata: {name: default}
spec: {path: %q}
---
apiVersion: forgeplane.dev/v1alpha1
kind: User
metadata: {name: root}
spec: {username: root, email: root@example.com, admin: true}
---
apiVersion: forgeplane.dev/v1alpha1
kind: AccessToken
metadata: {name: root}
spec: {userRef: {name: root}, scopes: [api], secretRef: {name: root-token}}
---
apiVersion: forgeplane.dev/v1alpha1
kind: Group
metadata: {name: acme, namespace: acme}
spec: {path: acme}
---
apiVersion: forgeplane.dev/v1alpha1
kind: Project
metadata: {name: website, namespace: acme}
spec: {path: website, groupRef: {name: acme}}
`

// serve starts the image with an administrator and the project acme/website. It returns the address of its registry, and the administrator's token.
func serve() (registry, token string) {
	GinkgoHelper()
	cluster, ports, data := checkout.StartCluster(), installation.FreePorts(), GinkgoT().TempDir()
	options := forgeplane.Options{
		Programs: "/usr/bin", Data: data, Logs: data, HTTPPort: ports.HTTP, TLSPort: ports.TLS, HealthPort: ports.Health, ControlPlane: cluster.ControlPlane,
	}
	program, err := options.Program()
	Expect(err).NotTo(HaveOccurred())
	repositories := filepath.Join(data, "repositories")
	Expect(os.Mkdir(repositories, 0o700)).To(Succeed())
	shell.Do("chown", "-R", "65532:65532", data)
	program.Args = inImage(data, append([]string{program.Path}, program.Args...)...)
	program.Path, err = exec.LookPath("unshare")
	Expect(err).NotTo(HaveOccurred())
	program.Log = filepath.Join(GinkgoT().TempDir(), "log")
	p, err := process.Start(program)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(p.Stop()).To(Succeed()) })
	Expect(options.AwaitReady(p, patience.Wait)).To(Succeed(), p.Tail)

	cluster.Admin.Apply(fmt.Sprintf(objects, repositories))
	cluster.Admin.WaitReady("accesstoken/root")
	cluster.Admin.WaitReady("project/website", "--namespace=acme")
	token = cluster.Admin.Kubectl("get", "secret", "root-token", "--namespace="+forgeplane.Namespace, "--template={{.data.token | base64decode}}")
	return fmt.Sprintf("127.0.0.1:%d", ports.HTTP), token
}
