package endpoint_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/go-logr/logr"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

type artifact struct {
	JobID int64  `param:"job_id"`
	Path  string `param:"path" doc:"Where it is in the archive."`
}

type archive struct {
	Ref string `param:"ref"`
}

type file struct {
	Ref  string `param:"ref"`
	Path string `param:"path"`
}

type store struct {
	ID int64 `param:"id"`
}

var routed = endpoint.Table{
	endpoint.Get("/jobs/{job_id}/artifacts/{path...}", repeated[artifact]),
	endpoint.Get("/jobs/artifacts/{ref...}/download", repeated[archive]),
	endpoint.Get("/jobs/artifacts/{ref...}/raw/{path...}", repeated[file]),
	endpoint.Post("/jobs/{job_id}/artifacts/keep", repeated[struct {
		JobID int64 `param:"job_id"`
	}]),
	endpoint.Post("/stores/{id}/store", repeated[store]).TrailingSlash(),
}

func TestRoutes_preferWordsToParametersToWildcards(t *testing.T) {
	const noRoute = `{"error":"404 Not Found"}`
	for _, tt := range []struct {
		method, path string
		status       int
		body, allow  string
	}{
		{http.MethodGet, "/jobs/7/artifacts/a/b.txt", 200, `{"JobID":7,"Path":"a/b.txt"}`, ""},
		{http.MethodGet, "/jobs/7/artifacts/a%2Fb%2Etxt", 200, `{"JobID":7,"Path":"a/b.txt"}`, ""},
		{http.MethodGet, "/jobs/7/artifacts/%2E%2E/x", 200, `{"JobID":7,"Path":"../x"}`, ""},
		{http.MethodGet, "/jobs/artifacts/feature%2Fx/download", 200, `{"Ref":"feature/x"}`, ""},
		{http.MethodGet, "/jobs/artifacts/feature/x/download", 200, `{"Ref":"feature/x"}`, ""},
		{http.MethodGet, "/jobs/artifacts/main/raw/a/b.txt", 200, `{"Ref":"main","Path":"a/b.txt"}`, ""},
		{http.MethodGet, "/jobs/artifacts/feature/x/y/raw/a/b.txt", 200, `{"Ref":"feature/x/y","Path":"a/b.txt"}`, ""},
		{http.MethodGet, "/jobs/artifacts/feature/x/raw/raw/b.txt", 200, `{"Ref":"feature/x","Path":"raw/b.txt"}`, ""},
		{http.MethodPost, "/jobs/artifacts/feature/x/download", 405, `{"error":"405 Not Allowed"}`, "GET, HEAD"},
		{http.MethodGet, "/jobs/artifacts/feature//download", 404, noRoute, ""},
		{http.MethodGet, "/jobs/%61rtifacts/main/download", 200, `{"Ref":"main"}`, ""},
		{http.MethodGet, "/jobs/artifacts/artifacts/x", 400, `{"error":"job_id is invalid"}`, ""},
		{http.MethodPost, "/jobs/7/artifacts/keep", 201, `{"JobID":7}`, ""},
		{http.MethodPost, "/stores/7/store", 201, `{"ID":7}`, ""},
		{http.MethodPost, "/stores/7/store/", 201, `{"ID":7}`, ""},
		{http.MethodPut, "/stores/7/store/", 405, `{"error":"405 Not Allowed"}`, "POST"},
		{http.MethodPost, "/jobs/7/artifacts/other", 405, `{"error":"405 Not Allowed"}`, "GET, HEAD"},
		{http.MethodPut, "/jobs/7/artifacts/keep", 405, `{"error":"405 Not Allowed"}`, "GET, HEAD, POST"},
		{"PROPFIND", "/jobs/7/artifacts/keep", 405, `{"error":"405 Not Allowed"}`, "GET, HEAD, POST"},
		{http.MethodPost, "/stores/7/store//", 404, noRoute, ""},
		{http.MethodPost, "/stores/7//store", 404, noRoute, ""},
		{http.MethodPost, "/stores/7/./store", 404, noRoute, ""},
		{http.MethodGet, "/jobs/7/artifacts", 404, noRoute, ""},
		{http.MethodGet, "/jobs/7/artifacts/", 404, noRoute, ""},
		{http.MethodGet, "/jobs/7/artifacts/a/", 404, noRoute, ""},
		{http.MethodGet, "/jobs/7/artifacts/a//b", 404, noRoute, ""},
		{http.MethodGet, "/jobs/7/artifacts/../x", 404, noRoute, ""},
		{http.MethodGet, "/jobs/artifacts/main/download/", 404, noRoute, ""},
		{http.MethodGet, "/", 404, noRoute, ""},
		{http.MethodGet, "//", 404, noRoute, ""},
	} {
		t.Run(tt.method+" "+tt.path, func(t *testing.T) {
			w := serve(t, routed, httptest.NewRequest(tt.method, "https://forge.example"+tt.path, http.NoBody))
			if w.Code != tt.status || w.Body.String() != tt.body || w.Header().Get("Allow") != tt.allow || w.Header().Get("Location") != "" {
				t.Errorf("got %d %s, Allow %q\nwant %d %s, Allow %q", w.Code, w.Body, w.Header().Get("Allow"), tt.status, tt.body, tt.allow)
			}
		})
	}
}

func TestOpenAPI_describesWildcardsAndTrailingSlashes(t *testing.T) {
	var document any
	if err := json.Unmarshal(newHandler(routed).OpenAPI(), &document); err != nil {
		t.Fatal(err)
	}
	for place, want := range map[string]string{
		"paths /jobs/{job_id}/artifacts/{path} get parameters path": `{"name":"path","in":"path","required":true,"x-wildcard":true,
			"description":"Where it is in the archive.","schema":{"type":"string"}}`,
		"paths /jobs/artifacts/{ref}/download get parameters ref":     `{"name":"ref","in":"path","required":true,"x-wildcard":true,"schema":{"type":"string"}}`,
		"paths /jobs/{job_id}/artifacts/{path} get parameters job_id": `{"name":"job_id","in":"path","required":true,"schema":{"type":"integer","format":"int64"}}`,
		"paths /jobs/{job_id}/artifacts/{path} get operationId":       `"getJobsByJobIdArtifactsByPath"`,
		"paths /stores/{id}/store post operationId":                   `"postStoresByIdStore"`,
		"paths /stores/{id}/store/ post operationId":                  `"postStoresByIdStoreWithSlash"`,
		"paths /stores/{id}/store/ post responses 201 description":    `"Created"`,
	} {
		if got := find(document, place); !equalJSON(t, got, want) {
			shown, _ := json.Marshal(got)
			t.Errorf("%s:\ngot  %s\nwant %s", place, shown, want)
		}
	}
}

func TestEndpoint_hidesDotsOfWildcardInString(t *testing.T) {
	if got := routed[0].String(); got != "GET /jobs/{job_id}/artifacts/{path}" {
		t.Errorf("got %s", got)
	}
}

func TestUnknownPath_namesTheReference(t *testing.T) {
	h := endpoint.NewHandler(endpoint.Options{
		Guard: open{}, Log: logr.Discard(), BaseURL: &url.URL{}, Reference: "https://forge.example/-/docs",
	}, routed)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/nothing", http.NoBody))
	const want = `{"error":"404 Not Found","error_description":"This server does not serve this path; https://forge.example/-/docs lists the ` +
		`paths that it serves. Each slash within a full path, a branch or the path of a file must be sent as %2F."}`
	if w.Code != http.StatusNotFound || w.Body.String() != want {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}
