package apiserver

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/test/tools"
)

func TestGeneratedClient_makesRequests(t *testing.T) {
	w := newWorld(t, v1alpha1.VisibilityPrivate)
	server := httptest.NewServer(split(w.handler, http.NotFoundHandler(), http.NotFoundHandler(), http.NotFoundHandler(), http.NotFoundHandler()))
	defer server.Close()
	var document any
	if err := json.Unmarshal(w.handler.OpenAPI(), &document); err != nil {
		t.Fatal(err)
	}
	narrow(document)
	text, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	got := tools.Client(t, text, "try", base(t, server.URL+restPrefix+"/openapi.json"), familytest.Value("admin"), strconv.Itoa(projectID))
	const want = `project: 200 above/team/app
label: 201 generated #d9534f
label: 409 Label already exists
labels: 200 1 2
missing: 404 true`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// base returns the address of the API according to the document at an address, as clients find it.
func base(t *testing.T, address string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var document struct{ Servers []struct{ URL string } }
	if err := json.NewDecoder(answer.Body).Decode(&document); err != nil || len(document.Servers) == 0 {
		t.Fatalf("got %v, %v", document, err)
	}
	to, err := r.URL.Parse(document.Servers[0].URL)
	if err != nil {
		t.Fatal(err)
	}
	return to.String()
}

// narrow removes from schemas what the generator does not know: a list that can also be a text, and null as a value of an enum.
func narrow(part any) {
	switch v := part.(type) {
	case map[string]any:
		if types, ok := v["type"].([]any); ok && types[0] == "array" {
			v["type"] = "array"
		}
		if values, ok := v["enum"].([]any); ok {
			v["enum"] = slices.DeleteFunc(values, func(value any) bool { return value == nil })
		}
		for _, below := range v {
			narrow(below)
		}
	case []any:
		for _, below := range v {
			narrow(below)
		}
	}
}
