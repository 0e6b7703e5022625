package projects_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
)

// tagged is the part of a project that has topics.
type tagged struct {
	ID      int64    `json:"id"`
	Topics  []string `json:"topics"`
	TagList []string `json:"tag_list"`
}

func TestTopics_areSetAndShown(t *testing.T) {
	f := newForge(t)
	for _, c := range []struct {
		body string
		want []string
	}{
		{`{"topics":["go"," Kubernetes ","GO",""]}`, []string{"go", "Kubernetes"}},
		{`{"description":"unchanged topics"}`, []string{"go", "Kubernetes"}},
		{`{"tag_list":"a, b c"}`, []string{"a", "b c"}},
		{`{"topics":[]}`, []string{}},
	} {
		a := f.As("mary", "PUT /projects/20", c.body)
		got := familytest.Decode[tagged](t, a)
		if a.Code != http.StatusOK || got.Topics == nil || !slices.Equal(got.Topics, c.want) || !slices.Equal(got.TagList, c.want) {
			t.Errorf("%s: got %s", c.body, a)
		}
	}
	got := familytest.Decode[tagged](t, f.As("mary", "POST /projects", `{"namespace_id":10,"path":"new","topics":"x,y"}`))
	if want := []string{"x", "y"}; !slices.Equal(got.Topics, want) {
		t.Errorf("got %v, want %v", got.Topics, want)
	}
}

func TestTopics_areRefusedWithAReason(t *testing.T) {
	f := newForge(t)
	many := make([]string, 51)
	for i := range many {
		many[i] = strings.Repeat("x", i+1)
	}
	for want, topics := range map[string][]string{
		`400 {"message":{"topics":["are too many (maximum is 50)"]}}`:                      many,
		`400 {"message":{"topics":["is too long (maximum is 255 characters)"]}}`:           {strings.Repeat("x", 256)},
		`400 {"message":{"topics":["can contain neither commas nor control characters"]}}`: {"a\tb"},
	} {
		body, err := json.Marshal(map[string]any{"topics": topics})
		if err != nil {
			t.Fatal(err)
		}
		if got := f.As("mary", "PUT /projects/20", string(body)).String(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestListProjects_filtersByTopics(t *testing.T) {
	f := newForge(t)
	f.As("mary", "PUT /projects/20", `{"topics":["go","web"]}`)
	f.As("mary", "PUT /projects/21", `{"topics":["Go"]}`)
	for filter, want := range map[string][]int64{"go": {20, 21}, "GO,web": {20}, "web, go": {20}, "rust": nil, "g": nil, "": {20, 21}} {
		all := familytest.Decode[[]tagged](t, f.As("mary", "GET /projects?order_by=id&sort=asc&topic="+strings.ReplaceAll(filter, " ", "%20"), ""))
		var got []int64
		for _, p := range all {
			got = append(got, p.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: got %v, want %v", filter, got, want)
		}
	}
}
