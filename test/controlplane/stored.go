package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// registry is the prefix of kube-apiserver's objects in etcd.
const registry = "/registry/"

// Stored returns the resource versions of objects, by what follows prefix in their keys of etcd. The prefix "forgeplane.dev/" leads to
// "labels/acme/bug", and "secrets/" to "acme/token".
//
// It asks etcd, because kube-apiserver answers a list from memory, and waits up to 100 ms until it knows that its memory is up to date.
func (c *ControlPlane) Stored(ctx context.Context, prefix string) (map[string]string, error) {
	prefix = registry + prefix
	found, err := c.readEtcd(ctx, prefix, false)
	if err != nil {
		return nil, err
	}
	versions := map[string]string{}
	for _, o := range found {
		versions[strings.TrimPrefix(string(o.Key), prefix)] = strconv.FormatInt(o.Revision, 10)
	}
	return versions, nil
}

// Remove removes objects, by what follows prefix in their keys of etcd. Like Restore, it writes to etcd: clients see the deletions, and no finalizer
// delays them.
func (c *ControlPlane) Remove(ctx context.Context, prefix string, paths iter.Seq[string]) error {
	for path := range paths {
		if err := c.remove(ctx, []byte(registry+prefix+path)); err != nil {
			return err
		}
	}
	return nil
}

// remove removes a key from etcd.
func (c *ControlPlane) remove(ctx context.Context, key []byte) error {
	if err := c.askEtcd(ctx, "/v3/kv/deleterange", map[string]any{"key": key}, &struct{}{}); err != nil {
		return fmt.Errorf("removing %s: %w", key, err)
	}
	return nil
}

// stored is an object in etcd. JSON has keys and values in base64, and numbers as text.
type stored struct {
	Key      []byte `json:"key"`
	Value    []byte `json:"value"`
	Revision int64  `json:"mod_revision,string"`
}

// readEtcd returns the objects below a prefix, with or without values.
func (c *ControlPlane) readEtcd(ctx context.Context, prefix string, values bool) ([]stored, error) {
	var found struct {
		Kvs []stored `json:"kvs"`
	}
	// The first key that does not begin with the prefix ends the range.
	end := []byte(prefix)
	end[len(end)-1]++
	err := c.askEtcd(ctx, "/v3/kv/range", map[string]any{"key": []byte(prefix), "range_end": end, "keys_only": !values}, &found)
	if err != nil {
		return nil, fmt.Errorf("reading the objects below %s: %w", prefix, err)
	}
	return found.Kvs, nil
}

// askEtcd sends a request to the JSON API of etcd, and decodes the answer.
func (c *ControlPlane) askEtcd(ctx context.Context, path string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://etcd"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := c.store.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", response.Status, bytes.TrimSpace(text))
	}
	return json.Unmarshal(text, answer)
}

// newStore returns a client of the etcd that listens on a socket.
func newStore(socket string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
}
