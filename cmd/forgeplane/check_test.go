package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheck_leavesProjectOfUserAlone(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + " " + r.URL.Path {
		case "GET /api/v4/user":
			fmt.Fprint(w, `{"username":"dana"}`)
		case "GET /api/v4/projects/dana/forgeplane-check":
			fmt.Fprint(w, `{"path_with_namespace":"dana/forgeplane-check","description":"Mine"}`)
		default:
			t.Errorf("%s %s", r.Method, r.URL)
		}
	}))
	t.Cleanup(server.Close)
	err := check{url: server.URL, git: "git"}.run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "dana/forgeplane-check is not one of a check") {
		t.Error(err)
	}
}

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
