package version

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"go.yaml.in/yaml/v3"

	"github.com/forgeplane/forgeplane/test/terminal"
)

func TestOf_hasTheCommitOfACheckout(t *testing.T) {
	RegisterTestingT(t)
	directory := t.TempDir()
	file := filepath.Join(directory, File)
	Expect(os.MkdirAll(filepath.Dir(file), 0o700)).To(Succeed())
	Expect(os.WriteFile(file, []byte("1.2.3\n"), 0o600)).To(Succeed())
	outside := Version{Number: "1.2.3", Date: time.Unix(0, 0).UTC()}
	Expect(Of(t.Context(), directory)).To(Equal(outside))
	Expect(outside.LinkerFlags()).To(HaveSuffix("main.commit="))

	shell := terminal.New(directory, t.TempDir()).As("somebody", "").With("GIT_COMMITTER_DATE=2026-01-02T03:04:05Z")
	shell.Git("init", "--quiet")
	shell.Git("add", ".")
	shell.Git("commit", "--quiet", "--message=First")
	shell.Git("tag", "v9")
	for _, path := range []string{directory, filepath.Join(directory, ".git")} {
		if os.Geteuid() == 0 {
			Expect(os.Chown(path, 1, 1)).To(Succeed(), "git does not trust another user by default")
		}
	}
	id := shell.Git("rev-parse", "--short=12", "HEAD")
	clean := Version{Number: "1.2.3", Commit: id[:12], Date: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	Expect(Of(t.Context(), directory)).To(Equal(clean))
	Expect(clean.LinkerFlags()).To(HaveSuffix("main.commit=" + id[:12]))

	Expect(os.WriteFile(file, []byte("1.2.4\n"), 0o600)).To(Succeed())
	changed, err := Of(t.Context(), directory)
	Expect(err).NotTo(HaveOccurred())
	Expect(changed.Commit).To(Equal(id[:12] + "-dirty"))
}

func TestChart_hasTheSameVersion(t *testing.T) {
	g := NewWithT(t)
	v, err := Of(t.Context(), "../..")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(v.Number).To(MatchRegexp(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`), "%s must be a semantic version, and a tag of an image", File)
	text, err := os.ReadFile("../../charts/forgeplane/Chart.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	var chart struct {
		Version    string `yaml:"version"`
		AppVersion string `yaml:"appVersion"`
	}
	g.Expect(yaml.Unmarshal(text, &chart)).To(Succeed())
	g.Expect(chart.Version).To(Equal(v.Number), "version of Chart.yaml")
	g.Expect(chart.AppVersion).To(Equal(v.Number), "appVersion of Chart.yaml")
}
