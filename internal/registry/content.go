package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/distribution/distribution/v3/manifest/manifestlist"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

const (
	// maxDescriptors is the maximum number of other contents that a manifest can name.
	maxDescriptors = 2000
	// maxReferrer is the greatest length of what lists of referrers show of a manifest, in bytes.
	maxReferrer = 64 << 10
)

// content has the relevant fields of manifests and indexes of all kinds.
type content struct {
	ArtifactType string            `json:"artifactType"`
	Config       *v1.Descriptor    `json:"config"`
	Layers       []v1.Descriptor   `json:"layers"`
	Manifests    []v1.Descriptor   `json:"manifests"`
	Subject      *v1.Descriptor    `json:"subject"`
	Annotations  map[string]string `json:"annotations"`
}

// references returns the descriptors of what belongs to the manifest. The subject does not.
func (c *content) references() []v1.Descriptor {
	all := slices.Concat(c.Layers, c.Manifests)
	if c.Config != nil {
		all = append(all, *c.Config)
	}
	return all
}

// parse parses a manifest of any kind.
func parse(payload []byte) (c content, err error) {
	err = json.Unmarshal(payload, &c)
	return c, err
}

// check parses a manifest that a client pushes. The error says why the registry does not take it: everything that it takes must be readable in one
// way alone, by this package and by the library.
func check(mediaType string, payload []byte) (content, error) {
	if err := distinct(payload); err != nil {
		return content{}, err
	}
	c, err := parse(payload)
	if err != nil {
		return content{}, fmt.Errorf("the manifest is malformed: %w", err)
	}
	if err := c.hasFieldsOf(mediaType); err != nil {
		return c, err
	}
	all := c.references()
	if len(all) > maxDescriptors {
		return c, fmt.Errorf("the manifest names %d other contents, and %d are the limit", len(all), maxDescriptors)
	}
	if c.Subject != nil {
		all = append(all, *c.Subject)
	}
	for _, d := range all {
		if !valid(d.Digest) {
			return c, fmt.Errorf("the digest %.100q must be one of SHA-256 or SHA-512", d.Digest)
		}
		if err := checkURLs(d.URLs); err != nil {
			return c, err
		}
		if d.Size < 0 {
			return c, fmt.Errorf("the size of %s must not be negative", d.Digest)
		}
	}
	return c, nil
}

// checkURLs returns an error unless clients can get a content at URLs. Only contents that must not be distributed have some.
func checkURLs(urls []string) error {
	for _, text := range urls {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Fragment != "" {
			return fmt.Errorf("the URL %.100q of a layer must be one of http or https, without a fragment", text)
		}
	}
	return nil
}

// hasFieldsOf returns an error unless the content has the fields of a manifest, or of an index, as its type says.
func (c *content) hasFieldsOf(mediaType string) error {
	index := mediaType == v1.MediaTypeImageIndex || mediaType == manifestlist.MediaTypeManifestList
	switch {
	case index && c.Manifests == nil:
		return errors.New("an index must have the field manifests")
	case index && (c.Config != nil || c.Layers != nil):
		return errors.New("an index must not have the fields config and layers")
	case !index && c.Config == nil:
		return errors.New("a manifest must have the field config")
	case !index && c.Manifests != nil:
		return errors.New("a manifest must not have the field manifests")
	}
	return nil
}

// distinct returns an error if an object in a JSON document has a key twice. At the top, keys that differ only in case count as the same.
func distinct(payload []byte) error {
	d := json.NewDecoder(bytes.NewReader(payload))
	type level struct {
		keys  map[string]struct{} // nil for an array
		value bool
	}
	var levels []level
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the manifest is malformed: %w", err)
		}
		delimiter, ok := token.(json.Delim)
		if ok && (delimiter == '}' || delimiter == ']') {
			levels = levels[:len(levels)-1]
			continue
		}
		if in := len(levels) - 1; in >= 0 && levels[in].keys != nil {
			if levels[in].value = !levels[in].value; levels[in].value {
				key := token.(string)
				if in == 0 {
					key = strings.ToLower(key)
				}
				if _, twice := levels[in].keys[key]; twice {
					return fmt.Errorf("the manifest has the key %.100q twice", key)
				}
				levels[in].keys[key] = struct{}{}
				continue
			}
		}
		switch {
		case ok && delimiter == '{':
			levels = append(levels, level{keys: map[string]struct{}{}})
		case ok:
			levels = append(levels, level{})
		}
	}
}

// anyDigest matches digests anywhere in a text.
var anyDigest = regexp.MustCompile(`sha256:[a-f0-9]{64}|sha512:[a-f0-9]{128}`)

// digestsIn returns the digests of what belongs to a stored manifest, and its subject or an empty digest. Everything that a malformed manifest
// mentions counts.
func digestsIn(payload []byte) (references []digest.Digest, subject digest.Digest) {
	c, err := parse(payload)
	if err != nil {
		for _, text := range anyDigest.FindAllString(string(payload), -1) {
			references = append(references, digest.Digest(text))
		}
		return references, ""
	}
	for _, d := range c.references() {
		references = append(references, d.Digest)
	}
	if c.Subject != nil {
		subject = c.Subject.Digest
	}
	return references, subject
}

// referrer returns the descriptor that lists of referrers have of a manifest.
func (c *content) referrer(mediaType string, payload []byte) (d v1.Descriptor, text string, err error) {
	d = v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(payload), Size: int64(len(payload)), ArtifactType: c.ArtifactType, Annotations: c.Annotations}
	if d.ArtifactType == "" && c.Config != nil {
		d.ArtifactType = c.Config.MediaType
	}
	encoded, err := json.Marshal(d)
	if err == nil && len(encoded) > maxReferrer {
		err = fmt.Errorf("the annotations and the type of a manifest with a subject must not be longer than %d bytes", maxReferrer)
	}
	return d, string(encoded), err
}
