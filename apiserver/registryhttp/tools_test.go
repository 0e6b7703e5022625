package registryhttp_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/crane"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/test/tools"
)

// skopeoEnv is set where skopeo must be installed. Elsewhere, its tests are skipped without it.
const skopeoEnv = "FORGEPLANE_TEST_SKOPEO"

// tool is a program that people use with registries, with its own files.
type tool struct {
	t       *testing.T
	path    string
	scratch string
}

func newSkopeo(t *testing.T) *tool {
	t.Helper()
	path, err := exec.LookPath("skopeo")
	switch {
	case err == nil:
	case os.Getenv(skopeoEnv) != "":
		t.Fatal(err)
	default:
		t.Skip("SKIPPED: skopeo is not installed, so it is not tried")
	}
	return &tool{t, path, t.TempDir()}
}

func newRegctl(t *testing.T) *tool {
	t.Helper()
	return &tool{t, tools.Images(t, "regctl"), t.TempDir()}
}

// try runs the program, and returns its output.
func (p *tool) try(input string, args ...string) (string, error) {
	p.t.Helper()
	command := exec.CommandContext(p.t.Context(), p.path, args...)
	command.Dir, command.Stdin = p.scratch, strings.NewReader(input)
	command.Env = append(os.Environ(), "HOME="+p.scratch, "XDG_RUNTIME_DIR="+p.scratch, "REGISTRY_AUTH_FILE="+p.scratch+"/auth.json", "DOCKER_CONFIG="+p.scratch, "REGCTL_CONFIG="+p.scratch+"/regctl.json")
	said, err := command.CombinedOutput()
	return strings.TrimSpace(string(said)), err
}

func (p *tool) must(args ...string) string {
	p.t.Helper()
	said, err := p.try("", args...)
	if err != nil {
		p.t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, said)
	}
	return said
}

// fails runs the program, which must fail, and returns its output.
func (p *tool) fails(args ...string) string {
	p.t.Helper()
	said, err := p.try("", args...)
	if err == nil {
		p.t.Fatalf("%s has succeeded:\n%s", strings.Join(args, " "), said)
	}
	return said
}

// onPlainAndTLS runs a test with a registry without and with TLS. authority is a directory with the certificate of the authority, if there is one.
func onPlainAndTLS(t *testing.T, test func(t *testing.T, w *world, authority string)) {
	t.Helper()
	t.Run("HTTP", func(t *testing.T) { test(t, newWorld(t), "") })
	t.Run("TLS", func(t *testing.T) {
		w := newWorldAt(t, httptest.NewTLSServer)
		text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.server.Certificate().Raw})
		authority := t.TempDir()
		if err := os.WriteFile(filepath.Join(authority, "ca.crt"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		test(t, w, authority)
	})
}

// multi is an index of images for two platforms in the directory that it returns, with the tag multi.
func multi(t *testing.T) (directory string, index v1.ImageIndex) {
	t.Helper()
	index = mutate.AppendManifests(mutate.IndexMediaType(emptyIndex(t), "application/vnd.oci.image.index.v1+json"))
	for _, architecture := range []string{"amd64", "arm64"} {
		i := mutate.MediaType(image(t), "application/vnd.oci.image.manifest.v1+json")
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: i, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}}})
	}
	directory = t.TempDir()
	path, err := layout.Write(directory, emptyIndex(t))
	if err == nil {
		err = path.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": "multi"}))
	}
	if err != nil {
		t.Fatal(err)
	}
	return directory, index
}

func emptyIndex(t *testing.T) v1.ImageIndex {
	t.Helper()
	i, err := random.Index(1, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func digestOf(t *testing.T, of interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	d, err := of.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d.String()
}

func TestSkopeo_usesRegistry(t *testing.T) {
	onPlainAndTLS(t, func(t *testing.T, w *world, authority string) {
		g, s := NewWithT(t), newSkopeo(t)
		at := func(prefix string) string {
			if authority != "" {
				return "--" + prefix + "cert-dir=" + authority
			}
			return "--" + prefix + "tls-verify=false"
		}
		said, err := s.try("wrong", "login", at(""), "--username=mary", "--password-stdin", w.host)
		g.Expect(err).To(HaveOccurred())
		g.Expect(said).To(ContainSubstring("invalid username/password"))
		said, err = s.try(familytest.Value("mary"), "login", at(""), "--username=mary", "--password-stdin", w.host)
		g.Expect(err).NotTo(HaveOccurred(), said)

		source, _ := multi(t)
		repository := "docker://" + w.host + "/acme/app/web"
		s.must("--insecure-policy", "copy", "--all", at("dest-"), "oci:"+source+":multi", repository+":multi")
		s.must("--insecure-policy", "copy", "--all", at("src-"), at("dest-"), repository+":multi", repository+"/debug:copy")
		var listed struct{ Tags []string }
		g.Expect(json.Unmarshal([]byte(s.must("list-tags", at(""), repository)), &listed)).To(Succeed())
		g.Expect(listed.Tags).To(Equal([]string{"multi"}))
		// skopeo changes the text of indexes.
		pushed, err := crane.Digest(w.host+"/acme/app/web:multi", w.craneAs("mary")...)
		g.Expect(err).NotTo(HaveOccurred())
		s.must("--insecure-policy", "copy", "--all", at("src-"), repository+"@"+pushed, "oci:pulled:multi")
		g.Expect(s.must("inspect", "--raw", at(""), repository+":multi")).To(ContainSubstring(`"architecture":"arm64"`))
		s.must("delete", at(""), repository+":multi")
		g.Expect(s.fails("inspect", at(""), repository+":multi")).To(ContainSubstring("manifest unknown"))
		g.Expect(s.fails("inspect", at(""), "docker://"+w.host+"/acme/app/none")).To(ContainSubstring("NAME_UNKNOWN"))

		// dan can push and not delete, gus can only pull, and acme/off has no registry.
		for _, c := range []struct {
			who, message string
			args         []string
		}{
			{"gus", "requested access to the resource is denied", []string{"--insecure-policy", "copy", "--all", at("dest-"), "oci:" + source + ":multi", repository + ":gus"}},
			{"dan", "do not allow you to delete it", []string{"delete", at(""), repository + "/debug:copy"}},
			{"sue", "requested access to the resource is denied", []string{"inspect", at(""), repository + "/debug:copy"}},
			{"gus", "requested access to the resource is denied", []string{"list-tags", at(""), "docker://" + w.host + "/acme/members"}},
			{"mary", "requested access to the resource is denied", []string{"list-tags", at(""), "docker://" + w.host + "/acme/off"}},
		} {
			other := newSkopeo(t)
			said, err := other.try(familytest.Value(c.who), "login", at(""), "--username="+c.who, "--password-stdin", w.host)
			g.Expect(err).NotTo(HaveOccurred(), said)
			g.Expect(other.fails(c.args...)).To(ContainSubstring(c.message), fmt.Sprint(c.who, c.args))
		}
	})
}

func TestRegctl_usesRegistry(t *testing.T) {
	onPlainAndTLS(t, func(t *testing.T, w *world, authority string) {
		g, r := NewWithT(t), newRegctl(t)
		// A blob of more than 400 bytes is pushed in chunks.
		settings := []string{"registry", "set", w.host, "--skip-check", "--blob-max=400", "--blob-chunk=300"}
		if authority == "" {
			settings = append(settings, "--tls=disabled")
		} else {
			text, err := os.ReadFile(filepath.Join(authority, "ca.crt"))
			g.Expect(err).NotTo(HaveOccurred())
			settings = append(settings, "--tls=enabled", "--cacert="+string(text))
		}
		r.must(settings...)
		said, _ := r.try("wrong", "registry", "login", w.host, "--user=mary", "--pass-stdin")
		g.Expect(said).To(ContainSubstring("unauthorized"))
		said, err := r.try(familytest.Value("mary"), "registry", "login", w.host, "--user=mary", "--pass-stdin")
		g.Expect(err).NotTo(HaveOccurred(), said)

		source, index := multi(t)
		web, copied := w.host+"/acme/app/web", w.host+"/acme/open/copied"
		r.must("image", "copy", "ocidir://"+source+":multi", web+":multi")
		r.must("image", "copy", web+":multi", copied+":multi")
		g.Expect(r.must("tag", "ls", copied)).To(Equal("multi"))
		g.Expect(r.must("image", "digest", copied+":multi")).To(Equal(digestOf(t, index)))
		r.must("image", "copy", copied+":multi", "ocidir://pulled:multi")

		said, err = r.try("the bill of materials", "artifact", "put", "--artifact-type=application/vnd.example.sbom", "--subject="+web+":multi", web+":sbom")
		g.Expect(err).NotTo(HaveOccurred(), said)
		g.Expect(r.must("artifact", "list", "--format={{range .Descriptors}}{{.ArtifactType}}{{end}}", web+":multi")).To(Equal("application/vnd.example.sbom"))
		g.Expect(r.must("artifact", "get", "--subject="+web+":multi", "--filter-artifact-type=application/vnd.example.sbom")).To(Equal("the bill of materials"))

		r.must("tag", "delete", web+":sbom")
		g.Expect(r.must("tag", "ls", web)).To(Equal("multi"))
		r.must("manifest", "delete", web+"@"+digestOf(t, index))
		g.Expect(r.must("tag", "ls", web)).To(BeEmpty())
		g.Expect(r.fails("manifest", "get", web+":multi")).To(ContainSubstring("not found"))
		g.Expect(r.fails("tag", "ls", w.host+"/acme/off")).To(ContainSubstring("unauthorized"))
	})
}

// craneAs are the options of crane for a user.
func (w *world) craneAs(username string) []crane.Option {
	return []crane.Option{
		crane.WithAuth(&authn.Basic{Username: username, Password: familytest.Value(username)}), crane.WithTransport(w.server.Client().Transport),
	}
}

func TestCrane_usesRegistry(t *testing.T) {
	onPlainAndTLS(t, func(t *testing.T, w *world, _ string) {
		g := NewWithT(t)
		mary, i := w.craneAs("mary"), image(t)
		g.Expect(crane.Push(i, w.host+"/acme/app/web:1.0", mary...)).To(Succeed())
		g.Expect(crane.Copy(w.host+"/acme/app/web:1.0", w.host+"/acme/open:1.0", mary...)).To(Succeed())
		g.Expect(crane.Tag(w.host+"/acme/open:1.0", "2.0", mary...)).To(Succeed())
		g.Expect(crane.ListTags(w.host+"/acme/open", w.craneAs("sue")...)).To(Equal([]string{"1.0", "2.0"}))
		got, err := crane.Pull(w.host+"/acme/open:2.0", crane.WithTransport(w.server.Client().Transport))
		g.Expect(err).NotTo(HaveOccurred(), "the project is public")
		g.Expect(digestOf(t, got)).To(Equal(digestOf(t, i)))
		g.Expect(crane.Catalog(w.host, w.craneAs("root")...)).To(Equal([]string{"acme/app/web", "acme/open"}))
		g.Expect(crane.Delete(w.host+"/acme/open:1.0", mary...)).To(Succeed())
		g.Expect(crane.Delete(w.host+"/acme/open@"+digestOf(t, i), mary...)).To(Succeed())
		g.Expect(crane.ListTags(w.host+"/acme/open", mary...)).To(BeEmpty())
	})
}

func TestCrane_saysWhyItIsRefused(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.push(t, "acme/members:1.0")
	expired, _ := w.bearer(t, "dan", "repository:acme/members:pull")
	w.scopes(t, "mary", v1alpha1.ScopeReadRegistry)
	w.scopes(t, "rita", v1alpha1.ScopeReadAPI)
	pull := func(o ...crane.Option) error {
		_, err := crane.Pull(w.host+"/acme/members:1.0", o...)
		return err
	}
	tags := func(project string) error {
		_, err := crane.ListTags(w.host+"/acme/"+project, w.craneAs("dan")...)
		return err
	}
	for name, c := range map[string]struct {
		err     error
		message string
	}{
		"wrong password": {pull(crane.WithAuth(&authn.Basic{Username: "dan", Password: "wrong"})),
			"UNAUTHORIZED: HTTP Basic: Access denied. Sign in with your username, and as password an access token with the scope read_registry, write_registry or api."},
		"token that can only pull": {crane.Push(image(t), w.host+"/acme/app:1.0", w.craneAs("mary")...), "do not allow you to push it"},
		"manifest that is too long": {crane.Push(mutate.Annotations(image(t), map[string]string{"long": strings.Repeat("x", 10<<20)}).(v1.Image), w.host+"/acme/app:long", w.craneAs("dan")...),
			"MANIFEST_INVALID: the manifest is longer than 4 MiB"},
		"token without a registry scope":   {pull(w.craneAs("rita")...), "DENIED: access forbidden"},
		"private registry and a Guest":     {pull(w.craneAs("gus")...), "UNAUTHORIZED: acme/members does not exist, or your access token and your role in its project do not allow you to pull it, or the project's container registry is off"},
		"registry that is off":             {tags("off"), "UNAUTHORIZED: acme/off does not exist, or"},
		"nobody who has signed in":         {pull(), "DENIED: access forbidden"},
		"name that is not below a project": {tags("none"), "UNAUTHORIZED: acme/none does not exist, or"},
	} {
		g.Expect(c.err).To(MatchError(ContainSubstring(c.message)), name)
	}
	g.Expect(pull(w.craneAs("dan")...)).To(Succeed())
	w.clock.Step(6 * 60 * 1e9)
	status, header, body := w.do(t, expired, http.MethodGet, "/v2/acme/members/manifests/1.0", nil, nil)
	g.Expect(status).To(Equal(http.StatusUnauthorized), body)
	g.Expect(header.Get("Www-Authenticate")).To(ContainSubstring(`error="invalid_token"`))
	g.Expect(pull(crane.WithAuth(&authn.Bearer{Token: expired}))).To(MatchError(ContainSubstring("UNAUTHORIZED: the token has expired or is not valid: sign in again")))
	g.Expect(pull(w.craneAs("dan")...)).To(Succeed(), "the client gets another token")
}
