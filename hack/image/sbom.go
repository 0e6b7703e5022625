package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go" // the format of the bill of materials
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/forgeplane/forgeplane/hack/version"
)

// bill returns the bill of materials of an image as CycloneDX: the packages of the base, and the Go modules that the programs are built from. The
// same image has the same bill, so it has no time and no serial number.
func bill(image v1.Image, b *base, programs map[string][]byte, v version.Version) ([]byte, error) {
	digest, err := image.Digest()
	if err != nil {
		return nil, err
	}
	modules, err := moduleComponents(programs)
	if err != nil {
		return nil, err
	}
	components := slices.Concat(packageComponents(b), modules)
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &cdx.Component{
		BOMRef: digest.String(), Type: cdx.ComponentTypeContainer, Name: "forgeplane", Version: v.Number,
		Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: digest.Hex}},
	}}
	bom.Components = &components
	var text bytes.Buffer
	if err := cdx.NewBOMEncoder(&text, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return nil, err
	}
	return text.Bytes(), nil
}

func packageComponents(b *base) (components []cdx.Component) {
	release := b.release()
	for _, p := range b.packages {
		address := fmt.Sprintf("pkg:deb/%s/%s@%s?arch=%s&distro=%s-%s", release["ID"], url.PathEscape(p.Name), url.QueryEscape(p.Version), p.Architecture,
			release["ID"], release["VERSION_ID"])
		components = append(components, cdx.Component{
			BOMRef: address, Type: cdx.ComponentTypeLibrary, Name: p.Name, Version: p.Version, PackageURL: address,
			Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: p.Digest}},
		})
	}
	return components
}

// release returns what os-release says about the distribution.
func (b *base) release() map[string]string {
	values := map[string]string{}
	for line := range strings.Lines(string(b.files["usr/lib/os-release"].content)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			values[name] = strings.Trim(value, `"`)
		}
	}
	return values
}

func moduleComponents(programs map[string][]byte) (components []cdx.Component, err error) {
	versions := map[string]string{}
	for name, content := range programs {
		info, err := buildinfo.Read(bytes.NewReader(content))
		if err != nil {
			return nil, fmt.Errorf("reading the modules of %s: %w", name, err)
		}
		versions["stdlib"] = strings.TrimPrefix(info.GoVersion, "go")
		for _, module := range info.Deps {
			if module.Replace != nil {
				module = module.Replace
			}
			versions[module.Path] = module.Version
		}
	}
	for _, path := range slices.Sorted(maps.Keys(versions)) {
		address := "pkg:golang/" + path + "@" + url.QueryEscape(versions[path])
		components = append(components, cdx.Component{BOMRef: address, Type: cdx.ComponentTypeLibrary, Name: path, Version: versions[path], PackageURL: address})
	}
	return components, nil
}
