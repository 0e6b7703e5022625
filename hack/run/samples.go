package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"slices"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// local are the objects that depend on this machine: the shards with their paths, and the project that is imported from this checkout.
//
//go:embed local.yaml.tmpl
var local string

// applySamples applies the samples and the objects in local, and waits until all of them are ready. It applies them if they are new or have
// changed, so that changes of the objects in an earlier run stay.
func (d *development) applySamples(ctx context.Context, _ context.CancelCauseFunc) error {
	if !d.settings.samples {
		return nil
	}
	samples, err := d.render(ctx, "config/samples")
	if err != nil {
		return err
	}
	manifests, err := d.renderLocal()
	if err != nil {
		return err
	}
	// The shards come first, because projects wait for one.
	manifests = slices.Concat(manifests, []byte("\n---\n"), samples)
	objects, err := decode(manifests)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(manifests)
	checksum := hex.EncodeToString(sum[:])
	applied, err := os.ReadFile(d.settings.samplesStamp())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if string(applied) != checksum {
		d.reporter.say("applying config/samples, and a project imported from this checkout")
		if err := d.apply(ctx, objects); err != nil {
			return err
		}
		if err := os.WriteFile(d.settings.samplesStamp(), []byte(checksum), 0o600); err != nil {
			return err
		}
	}
	return d.waitReady(ctx, objects)
}

// renderLocal fills in the values in local. Every value is a YAML string in single quotes.
func (d *development) renderLocal() ([]byte, error) {
	checkout := url.URL{Scheme: "file", Path: d.settings.checkout}
	values := map[string]string{"storage": d.settings.storage("default"), "fast": d.settings.storage("fast"), "checkout": checkout.String()}
	for key, value := range values {
		values[key] = "'" + strings.ReplaceAll(value, "'", "''") + "'"
	}
	parsed, err := template.New("local").Option("missingkey=error").Parse(local)
	if err != nil {
		return nil, err
	}
	var manifests bytes.Buffer
	err = parsed.Execute(&manifests, values)
	return manifests.Bytes(), err
}

// waitReady waits until the objects of Forgeplane's own kinds are ready, except for those that were deleted after an earlier start.
func (d *development) waitReady(ctx context.Context, objects []*unstructured.Unstructured) error {
	declared := slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool {
		return o.GroupVersionKind().Group != forgeplaneGroup
	})
	d.reporter.say("waiting for %d objects to be Ready", len(declared))
	waiting, err := d.waitFor(ctx, declared, "Ready", true)
	return d.goOnWithout(ctx, waiting, err)
}

// goOnWithout reports objects that do not become ready. It does not stop anything, because everything must run to find the cause.
func (d *development) goOnWithout(ctx context.Context, waiting []string, err error) error {
	if len(waiting) == 0 || ctx.Err() != nil {
		return err
	}
	d.reporter.say("%v; Forgeplane runs, but without these:\n          %s", err, strings.Join(waiting, "\n          "))
	d.unready += len(waiting)
	return nil
}
