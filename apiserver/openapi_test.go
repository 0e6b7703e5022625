package apiserver

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/aggregated"
)

func TestOpenAPI_serversLeadToEndpoints(t *testing.T) {
	var document struct{ Servers []struct{ URL string } }
	if err := json.Unmarshal(newWorld(t, v1alpha1.VisibilityPrivate).handler.OpenAPI(), &document); err != nil {
		t.Fatal(err)
	}
	if len(document.Servers) != 1 {
		t.Fatalf("got %v", document.Servers)
	}
	for _, prefix := range []string{restPrefix, aggregated.Prefix} {
		at := url.URL{Path: prefix + "/openapi.json"}
		to, err := at.Parse(document.Servers[0].URL)
		if err != nil || to.Path != prefix {
			t.Errorf("%s leads to %v, %v", at.Path, to, err)
		}
	}
}

func TestExamples_areAccepted(t *testing.T) {
	probe(t, func(p *prober) {
		if p.op.properties == nil || p.who.name != administrator {
			return
		}
		if p.op.example == nil {
			p.t.Errorf("%s has no example", p.op.sample)
			return
		}
		r := p.good()
		r.body, r.what = strings.NewReader(string(p.op.example)), "the example"
		// A file or a storage of the example can already exist or not be ready here. That is refused with "message".
		answer := p.send(r)
		if answer.Code == http.StatusUnprocessableEntity || answer.Code == http.StatusBadRequest && strings.HasPrefix(answer.Body.String(), `{"error"`) {
			p.t.Errorf("%s: %s is answered %d %s", p.op.sample, p.op.example, answer.Code, answer.Body)
		}
	})
}
