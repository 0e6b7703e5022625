package main

import (
	"context"
	"os"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// loadImages gives containerd the images of pause and of Forgeplane.
func (n *node) loadImages(ctx context.Context) error {
	archive := n.path("image.tar")
	if err := n.packPause(ctx, archive); err != nil {
		return err
	}
	if err := n.load(ctx, archive); err != nil {
		return err
	}
	for _, layout := range n.images {
		if err := execute(ctx, "tar", "--create", "--file="+archive, "--directory="+layout, "."); err != nil {
			return err
		}
		if err := n.load(ctx, archive, "--base-name="+forgeplaneImage); err != nil {
			return err
		}
	}
	return os.Remove(archive)
}

func (n *node) load(ctx context.Context, archive string, options ...string) error {
	arguments := append([]string{"--address=" + n.path("containerd.sock"), "--namespace=k8s.io", "images", "import"}, options...)
	return execute(ctx, "ctr", append(arguments, archive)...)
}

// packPause writes an archive with the image of pause.
func (n *node) packPause(ctx context.Context, archive string) error {
	files := n.path("pause.tar")
	if err := execute(ctx, "tar", "--create", "--file="+files, "--directory="+n.programs, "pause"); err != nil {
		return err
	}
	layer, err := tarball.LayerFromFile(files)
	if err != nil {
		return err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return err
	}
	configuration, err := image.ConfigFile()
	if err != nil {
		return err
	}
	configuration = configuration.DeepCopy()
	configuration.OS, configuration.Architecture, configuration.Config = "linux", runtime.GOARCH, v1.Config{Entrypoint: []string{"/pause"}}
	if image, err = mutate.ConfigFile(image, configuration); err != nil {
		return err
	}
	tag, err := name.NewTag(pauseImage)
	if err != nil {
		return err
	}
	return tarball.WriteToFile(archive, tag, image)
}
