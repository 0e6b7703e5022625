// Package image_test builds the image, runs it without a container engine, and pushes it with the chart to the registry that it serves.
package image_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/installation"
	"github.com/forgeplane/forgeplane/test/suite"
	"github.com/forgeplane/forgeplane/test/terminal"
)

func TestImage(t *testing.T) {
	suite.Run(t, "Image")
}

// The specs use a checkout, a terminal in it with the tools of Go, and the image that make image has built there.
var (
	checkout *installation.Checkout
	shell    terminal.Terminal
	image    v1.Image
	// root is the root directory of the image.
	root string
)

// prepare builds the image and unpacks it.
func prepare(ctx context.Context) {
	GinkgoHelper()
	if os.Geteuid() != 0 {
		Skip("SKIPPED: the image is not tried, because only root can change the root directory of a process")
	}
	for _, program := range []string{"apt-get", "dpkg-deb", "unshare", "chroot", "tar"} {
		if _, err := exec.LookPath(program); err != nil {
			Skip("SKIPPED: the image is not tried: " + err.Error())
		}
	}
	helm := installation.Helm(ctx)
	checkout = installation.NewCheckout()
	shell = checkout.Developer()
	shell = shell.With("PATH="+helm+":"+shell.Getenv("PATH"), "DOCKER_CONFIG="+filepath.Join(shell.Space(), "docker"))
	shell.Do("make", "image", "OUT=.dev/image")
	image = imageIn("image")
	root = filepath.Join(GinkgoT().TempDir(), "root")
	Expect(os.MkdirAll(root, 0o755)).To(Succeed())
	files := mutate.Extract(image)
	defer func() { _ = files.Close() }()
	unpack := exec.CommandContext(ctx, "tar", "--extract", "--same-permissions", "--same-owner", "--directory="+root)
	unpack.Stdin = files
	output, err := unpack.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(output))
}

// imageIn returns the image for this machine that make image has written into a directory in .dev.
func imageIn(directory string) v1.Image {
	GinkgoHelper()
	saved, err := layout.ImageIndexFromPath(filepath.Join(checkout.Data(), directory, "oci"))
	Expect(err).NotTo(HaveOccurred())
	outer, err := saved.IndexManifest()
	Expect(err).NotTo(HaveOccurred())
	index, err := saved.ImageIndex(outer.Manifests[0].Digest)
	Expect(err).NotTo(HaveOccurred())
	inner, err := index.IndexManifest()
	Expect(err).NotTo(HaveOccurred())
	i, err := index.Image(inner.Manifests[0].Digest)
	Expect(err).NotTo(HaveOccurred())
	return i
}

// confined is a script that runs a command as the user of the image in its root directory, which is read-only except for /tmp and a directory with
// data: $0 is the root directory, $1 the data, and then the command follows. The mounts end with the command. The directories above the data are new,
// because the user cannot read those of the test.
const confined = `data=$1; shift
mount --bind "$0" "$0"
mkdir -p "$0/dev" "$0/proc"
mount --rbind /proc "$0/proc"
mount -t tmpfs none "$0/dev"
for device in null random urandom zero; do
	: >"$0/dev/$device"
	mount --bind "/dev/$device" "$0/dev/$device"
done
mount -t tmpfs none "$0/tmp"
chmod 1777 "$0/tmp"
mkdir -p "$0$data"
mount --bind "$data" "$0$data"
mount -o remount,ro,bind "$0" "$0"
chroot=$(command -v chroot)
exec env -i PATH=/usr/bin "$chroot" --userspec=65532:65532 --groups=65532 "$0" "$@"`

// inImage returns the arguments of unshare that run a command in the image.
func inImage(data string, command ...string) []string {
	return append([]string{"--mount", "sh", "-euc", confined, root, data}, command...)
}
