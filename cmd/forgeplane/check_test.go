package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

func TestAskAggregated_reportsAnAPIThatDoesNotAnswer(t *testing.T) {
	for status, works := range map[int]bool{http.StatusOK: true, http.StatusNotFound: false, http.StatusServiceUnavailable: false} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/apis/rest.forgeplane.dev/v4" {
				t.Errorf("asked for %s", r.URL.Path)
			}
			w.WriteHeader(status)
		}))
		t.Cleanup(server.Close)
		kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
		text := "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a}}], clusters: [{name: a, cluster: {server: '" + server.URL + "'}}]}"
		if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := askAggregated(t.Context(), kubeconfig); (err == nil) != works {
			t.Errorf("%d: %v", status, err)
		}
	}
}
