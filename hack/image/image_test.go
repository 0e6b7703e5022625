package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/hack/version"
)

// distribution returns packages as they are on a machine with few files.
func distribution() []distPackage {
	const libraries = "usr/lib/x86_64-linux-gnu/"
	text := func(s string) node { return file(0o644, []byte(s)) }
	loader := "/lib64/ld-linux-x86-64.so.2"
	packages := map[string]tree{
		"base-files": {
			"usr/lib/os-release": text("ID=debian\nVERSION_ID=\"12\"\n"), "usr/share/common-licenses/GPL-2": text("GPL"), "etc/motd": text("Hello"),
		},
		"ca-certificates": {"usr/share/ca-certificates/mozilla/a.crt": text("A\n"), "usr/share/ca-certificates/mozilla/b.crt": text("B\n")},
		"dash":            {"usr/bin/dash": file(0o755, program(loader, "libc.so.6")), "usr/share/doc/dash/copyright": text("BSD")},
		"git": {
			"usr/bin/git": file(0o755, program(loader, "libz.so.1", "libc.so.6")), "usr/bin/git-upload-pack": {link: "git"}, "usr/bin/scalar": file(0o755, nil),
			"usr/lib/git-core/git": file(0o755, program(loader, "libc.so.6")), "usr/lib/git-core/git-remote-http": file(0o755, program(loader, "libz.so.1")),
			"usr/lib/git-core/git-remote-https": {link: "git-remote-http"}, "usr/lib/git-core/git-filter-branch": text("#!/bin/sh"),
		},
		"libc6": {
			libraries + "libc.so.6": file(0o755, program(loader)), libraries + "libm.so.6": file(0o755, program("")),
			libraries + "ld-linux-x86-64.so.2": file(0o755, program("")), "usr/lib64/ld-linux-x86-64.so.2": {link: "/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"},
			"usr/share/doc/libc6/copyright": text("LGPL"), libraries + "gconv/EUC-CN.so": file(0o644, program("", "libGB.so")), libraries + "gconv/libGB.so": file(0o644, program("")),
		},
		"libunused": {libraries + "libunused.so.1": file(0o644, program("")), "usr/share/doc/libunused/copyright": text("MIT")},
		"zlib1g":    {libraries + "libz.so.1": {link: "libz.so.1.2"}, libraries + "libz.so.1.2": file(0o644, program("", "libc.so.6")), "usr/share/doc/zlib1g": {link: "libc6"}},
	}
	var all []distPackage
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		all = append(all, distPackage{
			Name: name, Version: "1:2+3", Architecture: "amd64", Digest: "00ff", control: []byte("Package: " + name + "\n"), files: packages[name],
		})
	}
	return all
}

func TestNewBase_hasOnlyWhatIsNeeded(t *testing.T) {
	g := NewWithT(t)
	b, err := newBase(distribution())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(slices.Sorted(maps.Keys(b.files))).To(Equal([]string{
		"bin", "etc/group", "etc/nsswitch.conf", "etc/os-release", "etc/passwd", "etc/ssl/certs/ca-certificates.crt", "lib", "lib64", "sbin", "tmp",
		"usr/bin", "usr/bin/dash", "usr/bin/git", "usr/bin/git-upload-pack", "usr/bin/sh", "usr/lib",
		"usr/lib/git-core/git", "usr/lib/git-core/git-remote-http", "usr/lib/git-core/git-remote-https", "usr/lib/os-release",
		"usr/lib/x86_64-linux-gnu/gconv/EUC-CN.so", "usr/lib/x86_64-linux-gnu/gconv/libGB.so",
		"usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", "usr/lib/x86_64-linux-gnu/libc.so.6", "usr/lib/x86_64-linux-gnu/libz.so.1", "usr/lib/x86_64-linux-gnu/libz.so.1.2",
		"usr/lib64", "usr/lib64/ld-linux-x86-64.so.2", "usr/sbin",
		"usr/share/common-licenses/GPL-2", "usr/share/doc/dash/copyright", "usr/share/doc/libc6/copyright", "usr/share/doc/zlib1g/copyright",
		"var/lib/dpkg/status.d/base-files", "var/lib/dpkg/status.d/ca-certificates", "var/lib/dpkg/status.d/dash", "var/lib/dpkg/status.d/git",
		"var/lib/dpkg/status.d/libc6", "var/lib/dpkg/status.d/zlib1g", "var/lib/forgeplane",
	}))
	g.Expect(string(b.files["etc/ssl/certs/ca-certificates.crt"].content)).To(Equal("A\nB\n"))
	g.Expect(string(b.files["usr/share/doc/zlib1g/copyright"].content)).To(Equal("LGPL"), "through the link of its directory")
	g.Expect(b.packages).To(HaveLen(6), "all but libunused")
}

func TestNewBase_saysWhatIsMissing(t *testing.T) {
	for missing, message := range map[string]string{
		"zlib1g": "needs libz.so.1, which no package contains", "git": "do not contain /usr/bin/git", "ca-certificates": "the image would trust no server",
	} {
		packages := slices.DeleteFunc(distribution(), func(p distPackage) bool { return p.Name == missing })
		_, err := newBase(packages)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(message)), missing)
	}
}

func TestNewBase_refusesALinkToNothing(t *testing.T) {
	packages := distribution()
	packages[3].files["usr/bin/git-receive-pack"] = node{link: "git-shell"}
	_, err := newBase(packages)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("the target of the link /usr/bin/git-receive-pack, git-shell")))
}

var released = version.Version{Number: "1.2.3", Commit: "1f2e3d4c5b6a", Date: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}

// built returns an image of two small programs.
func built(t *testing.T, v version.Version) (v1.Image, *base) {
	t.Helper()
	b, err := newBase(distribution())
	if err != nil {
		t.Fatal(err)
	}
	i, err := newImage(b, map[string][]byte{"forgeplane": []byte("one"), "forgeplane-hook": []byte("two")}, "amd64", v)
	if err != nil {
		t.Fatal(err)
	}
	return i, b
}

func TestImage_isTheSameForTheSameInput(t *testing.T) {
	g := NewWithT(t)
	one, _ := built(t, released)
	two, _ := built(t, released)
	g.Expect(one.RawManifest()).To(Equal(must(two.RawManifest())))
	later := released
	later.Commit = "another"
	other, _ := built(t, later)
	g.Expect(other.RawManifest()).NotTo(Equal(must(one.RawManifest())))

	c := must(one.ConfigFile())
	g.Expect(c.OS + "/" + c.Architecture).To(Equal("linux/amd64"))
	g.Expect(c.Created.Time).To(Equal(released.Date))
	g.Expect(c.Config.User).To(Equal("65532:65532"))
	g.Expect(c.Config.Labels).To(And(HaveKeyWithValue("org.opencontainers.image.version", "1.2.3"),
		HaveKeyWithValue("org.opencontainers.image.revision", "1f2e3d4c5b6a"), HaveKeyWithValue("org.opencontainers.image.created", "2026-01-02T03:04:05Z")))
}

func TestLayer_hasDirectoriesOwnersAndNoTimes(t *testing.T) {
	g := NewWithT(t)
	l, err := tree{
		"usr/bin/a": file(0o755, []byte("a")), "usr/bin/b": {link: "a"}, "var/lib/forgeplane": {dir: true, mode: 0o700, owner: user},
	}.layer()
	g.Expect(err).NotTo(HaveOccurred())
	archive := must(l.Uncompressed())
	defer func() { _ = archive.Close() }()
	var lines []string
	for reader := tar.NewReader(archive); ; {
		h, err := reader.Next()
		if err != nil {
			break
		}
		g.Expect(h.ModTime.Unix()).To(BeZero())
		lines = append(lines, h.FileInfo().Mode().String()+" "+h.Name)
		if h.Name == "var/lib/forgeplane/" {
			g.Expect([]int{h.Uid, h.Gid}).To(Equal([]int{user, user}))
		}
	}
	g.Expect(lines).To(Equal([]string{
		"drwxr-xr-x usr/", "drwxr-xr-x usr/bin/", "-rwxr-xr-x usr/bin/a", "Lrwxrwxrwx usr/bin/b", "drwxr-xr-x var/", "drwxr-xr-x var/lib/", "drwx------ var/lib/forgeplane/",
	}))
}

func TestReadTree_mergesDirectoriesIntoUsr(t *testing.T) {
	g := NewWithT(t)
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, h := range []tar.Header{
		{Name: "./bin/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "./bin/a", Typeflag: tar.TypeReg, Mode: 0o4755, Size: 1},
		{Name: "./usr/bin/b", Typeflag: tar.TypeLink, Linkname: "./bin/a"},
		{Name: "./lib64/l", Typeflag: tar.TypeSymlink, Linkname: "/lib/x"},
	} {
		g.Expect(w.WriteHeader(&h)).To(Succeed())
		g.Expect(w.Write(make([]byte, h.Size))).To(BeEquivalentTo(h.Size))
	}
	g.Expect(w.Close()).To(Succeed())
	a := file(0o755, []byte{0})
	g.Expect(readTree(&archive)).To(Equal(tree{"usr/bin/a": a, "usr/bin/b": a, "usr/lib64/l": {link: "/lib/x"}}))
}

func TestFollow_endsInALoop(t *testing.T) {
	_, ok := tree{"a": {link: "b"}, "b": {link: "a"}}.follow("a")
	NewWithT(t).Expect(ok).To(BeFalse())
}

func TestBill_listsPackagesAndModules(t *testing.T) {
	g := NewWithT(t)
	i, b := built(t, released)
	itself := must(os.ReadFile(must(os.Executable())))
	text, err := bill(i, b, map[string][]byte{"forgeplane": itself}, released)
	g.Expect(err).NotTo(HaveOccurred())
	var document struct {
		BOMFormat string
		Metadata  struct {
			Component struct {
				BOMRef string `json:"bom-ref"`
			}
		}
		Components []struct{ PURL string }
	}
	g.Expect(json.Unmarshal(text, &document)).To(Succeed())
	g.Expect(document.BOMFormat).To(Equal("CycloneDX"))
	g.Expect(document.Metadata.Component.BOMRef).To(Equal(must(i.Digest()).String()))
	var addresses []string
	for _, c := range document.Components {
		addresses = append(addresses, c.PURL)
	}
	g.Expect(addresses).To(And(ContainElement("pkg:deb/debian/git@1%3A2%2B3?arch=amd64&distro=debian-12"),
		ContainElement(HavePrefix("pkg:golang/stdlib@")), ContainElement(HavePrefix("pkg:golang/github.com/google/go-containerregistry@v"))))
	g.Expect(bill(i, b, map[string][]byte{"forgeplane": itself}, released)).To(Equal(text))
}

func TestSave_replacesTheEarlierBuild(t *testing.T) {
	g := NewWithT(t)
	directory := t.TempDir()
	for _, number := range []string{"1.2.2", "1.2.3"} {
		v := released
		v.Number = number
		i, _ := built(t, v)
		g.Expect(save(newIndex([]string{"amd64"}, map[string]v1.Image{"amd64": i}), number, directory)).To(Succeed())
	}
	saved := must(layout.ImageIndexFromPath(directory))
	g.Expect(validate.Index(saved)).To(Succeed())
	manifest := must(saved.IndexManifest())
	g.Expect(manifest.Manifests).To(HaveExactElements(HaveField("Annotations", HaveKeyWithValue("org.opencontainers.image.ref.name", "1.2.3"))))
	blobs := must(filepath.Glob(filepath.Join(directory, "blobs", "sha256", "*")))
	g.Expect(blobs).To(HaveLen(5), "an index, a manifest, a configuration and two layers")
}

func TestDockerfile_agreesWithTheImage(t *testing.T) {
	g := NewWithT(t)
	text := string(must(os.ReadFile("Dockerfile")))
	i, _ := built(t, released)
	c := must(i.ConfigFile()).Config
	g.Expect(text).To(And(ContainSubstring("\nUSER "+c.User+"\n"), ContainSubstring("\nENTRYPOINT [\""+c.Entrypoint[0]+"\"]\n"),
		ContainSubstring("-o 65532 -g 65532 /var/lib/forgeplane")))
	arguments := map[string]string{"org.opencontainers.image.version": "$VERSION", "org.opencontainers.image.revision": "$COMMIT"}
	for label, value := range c.Labels {
		if label != "org.opencontainers.image.created" { // a container engine has its own record of the time
			g.Expect(text).To(ContainSubstring(label + `="` + cmp.Or(arguments[label], value) + `"`))
		}
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
