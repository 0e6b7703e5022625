// Command image builds the image of Forgeplane without a container engine, from packages of the distribution and the programs of this checkout. It
// writes an OCI layout and a bill of materials for each architecture, and can push the image to a registry.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/forgeplane/forgeplane/hack/version"
)

// options say what to build.
type options struct {
	image         string
	architectures []string
	output        string
	push          bool
}

func main() { os.Exit(command()) }

// command is main with an exit status.
func command() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var o options
	var architectures string
	flag.StringVar(&o.image, "image", "", "name of the image; the tag is the version, unless the name has one")
	flag.StringVar(&architectures, "architectures", runtime.GOARCH, "architectures, with commas between them")
	flag.StringVar(&o.output, "output", "bin/image", "directory of the results")
	flag.BoolVar(&o.push, "push", false, "push the image with the credentials of docker login")
	flag.Parse()
	o.architectures = strings.FieldsFunc(architectures, func(r rune) bool { return r == ',' || r == ' ' })
	if err := build(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		return 1
	}
	return 0
}

func build(ctx context.Context, o options) error {
	v, err := version.Of(ctx, ".")
	if err != nil {
		return err
	}
	tag, err := name.NewTag(o.image, name.WithDefaultTag(v.Number))
	if err != nil {
		return fmt.Errorf("reading the name of the image, such as registry.example/forgeplane:%s: %w", v.Number, err)
	}
	if o.push && !strings.Contains(o.image, "/") {
		return fmt.Errorf("pushing %s: the name of the image must begin with a registry, as in registry.example/forgeplane", o.image)
	}
	images := map[string]v1.Image{}
	for _, architecture := range o.architectures {
		images[architecture], err = buildFor(ctx, architecture, v, o.output)
		if err != nil {
			return fmt.Errorf("building for %s: %w", architecture, err)
		}
	}
	index := newIndex(o.architectures, images)
	if err := save(index, tag.TagStr(), filepath.Join(o.output, "oci")); err != nil {
		return fmt.Errorf("writing the image: %w", err)
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	reference := fmt.Sprintf("%s:%s@%s", tag.Repository, tag.TagStr(), digest)
	fmt.Printf("image: %s is in %s\n", reference, filepath.Join(o.output, "oci"))
	if !o.push {
		return nil
	}
	if err := remote.WriteIndex(tag, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return fmt.Errorf("pushing %s: %w", tag, err)
	}
	fmt.Printf("image: pushed %s\n", reference)
	return nil
}

// buildFor builds the image of an architecture, and writes its bill of materials.
func buildFor(ctx context.Context, architecture string, v version.Version, output string) (v1.Image, error) {
	packages, err := download(ctx, architecture, filepath.Join(output, "apt-"+architecture))
	if err != nil {
		return nil, fmt.Errorf("downloading packages: %w", err)
	}
	if err := checkGit(packages); err != nil {
		return nil, err
	}
	b, err := newBase(packages)
	if err != nil {
		return nil, err
	}
	programs, err := compile(ctx, architecture, v, filepath.Join(output, "programs-"+architecture))
	if err != nil {
		return nil, err
	}
	image, err := newImage(b, programs, architecture, v)
	if err != nil {
		return nil, err
	}
	text, err := bill(image, b, programs, v)
	if err != nil {
		return nil, fmt.Errorf("writing the bill of materials: %w", err)
	}
	if err := os.WriteFile(filepath.Join(output, "forgeplane-"+architecture+".cdx.json"), text, 0o644); err != nil {
		return nil, err
	}
	return image, report(image, architecture)
}

// report prints the size of an image.
func report(image v1.Image, architecture string) error {
	manifest, err := image.Manifest()
	if err != nil {
		return err
	}
	var size int64
	for _, layer := range manifest.Layers {
		size += layer.Size
	}
	fmt.Printf("image: %s has %.1f MB, compressed\n", architecture, float64(size)/1e6)
	return nil
}

// compile builds the programs of Forgeplane into a directory, with the driver for blobs in S3, and returns them by name.
func compile(ctx context.Context, architecture string, v version.Version, directory string) (map[string][]byte, error) {
	directory, err := filepath.Abs(directory)
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags=s3", "-ldflags="+v.LinkerFlags(), "-o", directory+"/", "./cmd/...")
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+architecture)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("go build: %w", err)
	}
	programs := map[string][]byte{}
	for _, name := range []string{"forgeplane", "forgeplane-hook"} {
		if programs[name], err = os.ReadFile(filepath.Join(directory, name)); err != nil {
			return nil, err
		}
	}
	return programs, nil
}
