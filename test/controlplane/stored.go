package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// registry is the prefix of kube-apiserver's objects in etcd.
const registry = "/registry/"

// Stored returns the resource versions of objects, by what follows prefix in their keys of etcd. The prefix "forgeplane.dev/" leads to
// "labels/acme/bug", and "secrets/" to "acme/token".
//
// It asks etcd, because kube-apiserver answers a list from memory, and waits up to 100 ms until it knows that its memory is up to date.
func (c *ControlPlane) Stored(ctx context.Context, prefix string) (map[string]string, error) {
	versions := map[string]string{}
	prefix = registry + prefix
	// JSON has keys in base64, and the first key that does not begin with the prefix ends the range.
	end := []byte(prefix)
	end[len(end)-1]++
	question, err := json.Marshal(map[string]any{"key": []byte(prefix), "range_end": end, "keys_only": true})
	if err != nil {
		return nil, err
	}
	answer, err := c.askEtcd(ctx, "/v3/kv/range", question)
	if err != nil {
		return nil, fmt.Errorf("asking etcd for the keys below %s: %w", prefix, err)
	}
	var found struct {
		Kvs []struct {
			Key         []byte `json:"key"`
			ModRevision string `json:"mod_revision"`
		} `json:"kvs"`
	}
	if err := json.Unmarshal(answer, &found); err != nil {
		return nil, fmt.Errorf("reading the answer of etcd: %w", err)
	}
	for _, kv := range found.Kvs {
		versions[strings.TrimPrefix(string(kv.Key), prefix)] = kv.ModRevision
	}
	return versions, nil
}

// askEtcd sends a request to the JSON API of etcd.
func (c *ControlPlane) askEtcd(ctx context.Context, path string, question []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://etcd"+path, bytes.NewReader(question))
	if err != nil {
		return nil, err
	}
	response, err := c.store.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", response.Status, bytes.TrimSpace(answer))
	}
	return answer, nil
}

// newStore returns a client of the etcd that listens on a socket.
func newStore(socket string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
}
