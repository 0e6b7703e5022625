package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"

	"github.com/forgeplane/forgeplane/test/bench/reference"
	"github.com/forgeplane/forgeplane/test/bench/testbed"
	"github.com/forgeplane/forgeplane/test/bench/traffic"
)

const (
	imageRounds = 8
	// imageLayers times layerSize is the size of an image, in bytes.
	imageLayers, layerSize = 4, 256 << 20
	// listedTags is the number of tags of a repository.
	listedTags = 10_000
)

func (b *bench) measureRegistry(ctx context.Context) error {
	return b.with(ctx, "registry", func(ctx context.Context, t *testbed.Testbed) error {
		r, err := b.newREST(t)
		if err != nil {
			return err
		}
		if err := r.introduce(ctx); err != nil {
			return err
		}
		project := newProject(restNamespace, projectName(0), "")
		if err := r.Create(ctx, project); err != nil {
			return err
		}
		ours := &images{base: r.URL() + "/v2/" + restNamespace + "/" + projectName(0), tokens: r}
		if b.wants(rowRegistryPush, rowRegistryPull) {
			if err := r.measureImages(ctx, ours); err != nil {
				return err
			}
		}
		if b.wants(rowRegistryToken) {
			if err := r.measureTokens(ctx); err != nil {
				return err
			}
		}
		if !b.wants(rowRegistryTags) {
			return nil
		}
		return r.measureTags(ctx, ours, project.Spec.ID)
	})
}

// images are a repository of images at a registry.
type images struct {
	// base is the URL of the repository.
	base string
	// tokens issues tokens for it; nil if the registry needs none.
	tokens *rest
	bearer string
}

// enter gets a token. It is valid for five minutes.
func (i *images) enter(ctx context.Context) error {
	if i.tokens == nil {
		return nil
	}
	request, err := i.tokens.tokenRequest(ctx, "pull,push")
	if err != nil {
		return err
	}
	text, err := answerTo(http.DefaultClient, request, http.StatusOK)
	if err != nil {
		return err
	}
	var said struct{ Token string }
	err = json.Unmarshal(text, &said)
	i.bearer = said.Token
	return err
}

// tokenRequest returns a request for a token.
func (r *rest) tokenRequest(ctx context.Context, actions string) (*http.Request, error) {
	query := url.Values{"service": {"container_registry"}, "scope": {"repository:" + restNamespace + "/" + projectName(0) + ":" + actions}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL()+"/jwt/auth?"+query.Encode(), http.NoBody)
	if err == nil {
		request.SetBasicAuth(restUser, r.token)
	}
	return request, err
}

// send sends a request to the registry, and returns the header of the answer. The content of the answer is discarded.
func (i *images) send(ctx context.Context, status int, method, target, mediaType string, body []byte) (http.Header, error) {
	if strings.HasPrefix(target, "/") {
		target = i.base + target
	}
	request, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", mediaType)
	request.Header.Set("Accept", v1.MediaTypeImageManifest)
	if i.bearer != "" {
		request.Header.Set("Authorization", "Bearer "+i.bearer)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		return nil, err
	}
	if answer.StatusCode != status {
		return nil, fmt.Errorf("%s %s was answered with %s", method, request.URL.Path, answer.Status)
	}
	return answer.Header, nil
}

// image is an image that a client has.
type image struct {
	parts    map[digest.Digest][]byte
	manifest []byte
}

// newImage returns an image that no registry has.
func newImage(layers, size int) (image, error) {
	i := image{parts: map[digest.Digest][]byte{}}
	m := v1.Manifest{MediaType: v1.MediaTypeImageManifest, Config: i.add("application/vnd.oci.image.config.v1+json", []byte(`{"architecture":"amd64","os":"linux"}`))}
	m.SchemaVersion = 2
	for range layers {
		layer := make([]byte, size)
		if _, err := rand.Read(layer); err != nil {
			return i, err
		}
		m.Layers = append(m.Layers, i.add(v1.MediaTypeImageLayerGzip, layer))
	}
	var err error
	i.manifest, err = json.Marshal(m)
	return i, err
}

func (i *image) add(mediaType string, content []byte) v1.Descriptor {
	d := digest.FromBytes(content)
	i.parts[d] = content
	return v1.Descriptor{MediaType: mediaType, Digest: d, Size: int64(len(content))}
}

// push pushes an image, all layers at once, as clients do.
func (i *images) push(ctx context.Context, what image, tag string) error {
	uploads, limited := errgroup.WithContext(ctx)
	for d, content := range what.parts {
		uploads.Go(func() error {
			begun, err := i.send(limited, http.StatusAccepted, http.MethodPost, "/blobs/uploads/", "", nil)
			if err != nil {
				return err
			}
			target, err := url.Parse(begun.Get("Location"))
			if err != nil {
				return err
			}
			query := target.Query()
			query.Set("digest", d.String())
			target.RawQuery = query.Encode()
			_, err = i.send(limited, http.StatusCreated, http.MethodPut, target.String(), "application/octet-stream", content)
			return err
		})
	}
	if err := uploads.Wait(); err != nil {
		return err
	}
	return i.tag(ctx, what, tag)
}

// tag pushes the manifest of an image.
func (i *images) tag(ctx context.Context, what image, tag string) error {
	_, err := i.send(ctx, http.StatusCreated, http.MethodPut, "/manifests/"+tag, v1.MediaTypeImageManifest, what.manifest)
	return err
}

// pull pulls an image, all layers at once.
func (i *images) pull(ctx context.Context, what image, tag string) error {
	if _, err := i.send(ctx, http.StatusOK, http.MethodGet, "/manifests/"+tag, "", nil); err != nil {
		return err
	}
	downloads, limited := errgroup.WithContext(ctx)
	for d := range what.parts {
		downloads.Go(func() error {
			_, err := i.send(limited, http.StatusOK, http.MethodGet, "/blobs/"+d.String(), "", nil)
			return err
		})
	}
	return downloads.Wait()
}

// timed returns the time in milliseconds that a function takes.
func timed(do func() error) (float64, error) {
	begun := time.Now()
	err := do()
	return milliseconds(time.Since(begun)), err
}

// measureImages compares pushes and pulls with those of the library's own registry.
func (r *rest) measureImages(ctx context.Context, ours *images) (err error) {
	directory := filepath.Join(r.bench.directory, "upstream")
	bare, err := reference.StartRegistry(ctx, directory)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bare.Stop()) }()
	same := &images{base: bare.URL + "/v2/" + restNamespace + "/" + projectName(0)}
	var what image
	pushed, pulled := [2][]float64{}, [2][]float64{}
	for round := range imageRounds {
		if what, err = newImage(imageLayers, layerSize); err != nil {
			return err
		}
		order := []int{round % 2, 1 - round%2}
		for _, n := range order {
			i := []*images{ours, same}[n]
			if err := i.enter(ctx); err != nil {
				return err
			}
			settle()
			took, err := timed(func() error { return i.push(ctx, what, "latest") })
			if err != nil {
				return err
			}
			pushed[n] = append(pushed[n], took)
			settle()
			if took, err = timed(func() error { return i.pull(ctx, what, "latest") }); err != nil {
				return err
			}
			pulled[n] = append(pulled[n], took)
		}
		for _, stored := range []string{filepath.Join(directory, "docker", "registry", "v2", "blobs"), filepath.Join(r.RegistryDir(), "docker", "registry", "v2", "blobs")} {
			if err := os.RemoveAll(stored); err != nil { // the next image has no layer of this one
				return err
			}
		}
	}
	r.bench.record(rowRegistryPush, pushed[0], pushed[1])
	r.bench.record(rowRegistryPull, pulled[0], pulled[1])
	return nil
}

// measureTokens compares tokens with those of a server that only signs.
func (r *rest) measureTokens(ctx context.Context) (err error) {
	request, err := r.tokenRequest(ctx, "pull")
	if err != nil {
		return err
	}
	text, err := answerTo(http.DefaultClient, request, http.StatusOK)
	if err != nil {
		return err
	}
	var said struct{ Token string }
	if err := json.Unmarshal(text, &said); err != nil {
		return err
	}
	claims := filepath.Join(r.bench.directory, "claims.json")
	if err := os.WriteFile(claims, []byte(strings.Split(said.Token, ".")[1]), 0o600); err != nil {
		return err
	}
	bare, err := reference.StartSigner(ctx, claims)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bare.Stop()) }()
	same, err := r.request(ctx, "http://"+bare.Address+"/jwt/auth")
	if err != nil {
		return err
	}
	return r.compare(ctx, question{row: rowRegistryToken}, traffic.Plain(request), traffic.Plain(same))
}

// measureTags pushes many tags, and lists some of them over REST.
func (r *rest) measureTags(ctx context.Context, ours *images, project int64) error {
	what, err := newImage(1, 1<<10)
	if err != nil {
		return err
	}
	if err := ours.enter(ctx); err != nil {
		return err
	}
	r.bench.say("pushing %d tags", listedTags)
	if err := ours.push(ctx, what, "tag-00000"); err != nil {
		return err
	}
	workers, limited := errgroup.WithContext(ctx)
	workers.SetLimit(creators)
	for n := 1; n < listedTags; n++ {
		workers.Go(func() error { return ours.tag(limited, what, fmt.Sprintf("tag-%05d", n)) })
	}
	if err := workers.Wait(); err != nil {
		return err
	}
	text, err := r.get(ctx, fmt.Sprintf("/projects/%d/registry/repositories", project))
	if err != nil {
		return err
	}
	var found []struct{ ID int64 }
	if err := json.Unmarshal(text, &found); err != nil {
		return err
	}
	if len(found) != 1 {
		return fmt.Errorf("the project has %d container repositories, not 1", len(found))
	}
	return r.measureRate(ctx, question{row: rowRegistryTags, path: fmt.Sprintf("/projects/%d/registry/repositories/%d/tags?per_page=20", project, found[0].ID)})
}
