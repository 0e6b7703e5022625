package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/textproto"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/forgeplane/forgeplane/internal/git"
)

// distPackage is a package of the distribution.
type distPackage struct {
	Name, Version, Architecture string
	// Digest is the SHA-256 of the archive.
	Digest string

	control []byte
	files   tree
}

// wanted are the packages of the image. apt adds those that they depend on.
var wanted = []string{"base-files", "ca-certificates", "dash", "git"}

// absent are dependencies that the image does without: they only install packages, or are for commands of Git that Forgeplane does not call.
var absent = []string{"awk", "debconf", "debianutils", "dpkg", "liberror-perl", "openssl", "perl"}

// aptTimeout is the time limit for downloading the packages.
const aptTimeout = 20 * time.Minute

// download returns the packages of an architecture, at the newest versions in the sources of apt on this machine. It keeps them in a directory for
// the next build, and changes nothing that apt has on this machine.
func download(ctx context.Context, architecture, directory string) ([]distPackage, error) {
	for _, program := range []string{"apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, fmt.Errorf("%s is missing: build on Debian, or use hack/image/Dockerfile with a container engine", program)
		}
	}
	directory, err := filepath.Abs(directory)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"lists/partial", "cache/archives/partial", "none/partial"} {
		if err := os.MkdirAll(filepath.Join(directory, name), 0o755); err != nil {
			return nil, err
		}
	}
	status := filepath.Join(directory, "status")
	if err := os.WriteFile(status, pretend(absent), 0o644); err != nil {
		return nil, err
	}
	settings := []string{
		"-qq", "-o", "Dir::State=" + directory, "-o", "Dir::State::status=" + status, "-o", "Dir::Cache=" + filepath.Join(directory, "cache"),
		"-o", "APT::Architecture=" + architecture, "-o", "APT::Architectures=" + architecture, "-o", "APT::Sandbox::User=",
	}
	ctx, cancel := context.WithTimeout(ctx, aptTimeout)
	defer cancel()
	if _, err := run(ctx, "apt-get", slices.Concat(settings, []string{"update"})...); err != nil {
		return nil, err
	}
	install := slices.Concat(settings, []string{"install", "--no-install-recommends", "--yes"}, wanted)
	// With an empty cache, apt names all archives. The cache can have other ones, from earlier builds.
	listed, err := run(ctx, "apt-get", slices.Concat(install, []string{"--print-uris", "-o", "Dir::Cache::Archives=" + filepath.Join(directory, "none")})...)
	if err != nil {
		return nil, explain(err, architecture)
	}
	if _, err := run(ctx, "apt-get", slices.Concat(install, []string{"--download-only"})...); err != nil {
		return nil, err
	}
	var packages []distPackage
	for line := range strings.Lines(string(listed)) {
		fields := strings.Fields(line) // the address, the file, its size and its checksum
		if len(fields) < 2 {
			continue
		}
		p, err := readPackage(ctx, filepath.Join(directory, "cache", "archives", fields[1]))
		if err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
	slices.SortFunc(packages, func(a, b distPackage) int { return strings.Compare(a.Name, b.Name) })
	return packages, nil
}

// remedy says what to do if apt lacks a package.
const remedy = "to /etc/apt/sources.list.d, or use hack/image/Dockerfile with a container engine"

// explain adds what to do if apt has no packages of an architecture.
func explain(err error, architecture string) error {
	if strings.Contains(err.Error(), "Unable to locate package") {
		return fmt.Errorf("apt has no packages of %s: add a source that has them "+remedy+": %w", architecture, err)
	}
	return err
}

// checkGit fails if the package of git is older than the git that Forgeplane accepts.
func checkGit(packages []distPackage) error {
	for _, p := range packages {
		if p.Name != "git" {
			continue
		}
		v := git.OldestVersion
		upstream := p.Version[strings.Index(p.Version, ":")+1:] // without the epoch, which git has in Debian
		if _, err := fmt.Sscanf(upstream, "%d.%d.%d", &v.Major, &v.Minor, &v.Patch); err != nil || !v.AtLeast(git.OldestVersion) {
			return fmt.Errorf("the git of apt is %s, but Forgeplane needs %s or later: add a source with a newer one "+remedy, p.Version, git.OldestVersion)
		}
	}
	return nil
}

// pretend returns the status of packages that apt takes for installed.
func pretend(names []string) []byte {
	var status bytes.Buffer
	for _, name := range names {
		fmt.Fprintf(&status, "Package: %s\nStatus: install ok installed\nVersion: 999\nArchitecture: all\nMulti-Arch: foreign\nMaintainer: none\nDescription: none\n\n", name)
	}
	return status.Bytes()
}

// readPackage reads an archive of a package.
func readPackage(ctx context.Context, archive string) (p distPackage, err error) {
	content, err := os.ReadFile(archive)
	if err != nil {
		return p, err
	}
	sum := sha256.Sum256(content)
	p.Digest = hex.EncodeToString(sum[:])
	if p.control, err = run(ctx, "dpkg-deb", "--field", archive); err != nil {
		return p, err
	}
	fields, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(append(p.control, '\n')))).ReadMIMEHeader()
	if err != nil {
		return p, fmt.Errorf("reading the description of %s: %w", archive, err)
	}
	p.Name, p.Version, p.Architecture = fields.Get("Package"), fields.Get("Version"), fields.Get("Architecture")
	files, err := run(ctx, "dpkg-deb", "--fsys-tarfile", archive)
	if err != nil {
		return p, err
	}
	p.files, err = readTree(bytes.NewReader(files))
	return p, err
}

// run returns the output of a command.
func run(ctx context.Context, name string, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, name, args...)
	command.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	var complaint strings.Builder
	command.Stderr = &complaint
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", name, err, complaint.String())
	}
	return output, nil
}
