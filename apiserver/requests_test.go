package apiserver

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/feature"
)

// sample is a request that succeeds, if its caller is let in.
type sample struct {
	endpoint *endpoint.Endpoint
	// note tells several samples of one endpoint from each other.
	note string
	// body is JSON; empty for none.
	body string
	// own has the parameters of the path that name the caller or something of his.
	own map[string]func(user int64) int64
	// in is what the request is about where the path does not say so: "group".
	in string
}

// String names the sample in the table.
func (s sample) String() string {
	if s.note == "" {
		return s.endpoint.String()
	}
	return fmt.Sprintf("%s (%s)", s.endpoint, s.note)
}

// subject is what the sample is about: "project", "group" or "instance".
func (s sample) subject() string {
	switch path := s.endpoint.Path(); {
	case s.in != "":
		return s.in
	case strings.HasPrefix(path, "/projects/{id}"):
		return "project"
	case strings.HasPrefix(path, "/groups/{id}"), strings.HasPrefix(path, "/namespaces/{"):
		return "group"
	default:
		return "instance"
	}
}

// target is the path that the sample is sent to for a user.
func (s sample) target(user int64) string {
	segments := strings.Split(s.endpoint.Path(), "/")
	for i, segment := range segments {
		if !strings.HasPrefix(segment, "{") {
			continue
		}
		key := segments[i-1] + "/" + segment
		if own, ok := s.own[key]; ok && user != 0 {
			segments[i] = strconv.FormatInt(own(user), 10)
			continue
		}
		segments[i] = named[key]
		if segment == "{id}" && segments[i-1] == "groups" || segment == "{namespace}" {
			segments[i] = strconv.Itoa(groupID)
		}
	}
	return strings.Join(segments, "/")
}

// named is what the parameters of paths are, by the segment before. An endpoint whose parameters are not among these is
// answered 404 for everybody, which the test reports.
var named = map[string]string{
	"features/{name}":               feature.SSHCertificates,
	"projects/{id}":                 strconv.Itoa(projectID),
	"users/{id}":                    strconv.Itoa(targetID),
	"users/{user_id}":               strconv.Itoa(targetID),
	"members/{user_id}":             strconv.Itoa(targetID),
	"all/{user_id}":                 strconv.Itoa(targetID),
	"deploy_keys/{key_id}":          strconv.Itoa(keyID),
	"protected_branches/{name}":     "main",
	"labels/{label_id}":             "bug",
	"triggers/{trigger_id}":         strconv.Itoa(triggerID),
	"badges/{badge_id}":             strconv.Itoa(badgeID),
	"allowlist/{target_project_id}": strconv.Itoa(otherProjectID),
	"remote_mirrors/{mirror_id}":    strconv.Itoa(mirrorID),
	"personal_access_tokens/{id}":   strconv.Itoa(targetTokenID),
	"blobs/{sha}":                   blobID,
	"branches/{branch}":             "topic",
	"tags/{tag_name}":               "v1.0.0",
	"commits/{sha}":                 "main",
	"files/{file_path}":             "README.md",
}

// bodies are what the requests say that have to say something.
var bodies = map[string]string{
	"POST /features/{name}": `{"value":true}`,
	"POST /users":           `{"email":"new@forge.example","name":"New","username":"new"}`,
	"PUT /users/{id}":       `{"name":"Renamed"}`,
	"POST /users/{user_id}/personal_access_tokens": `{"name":"new","scopes":["api"]}`,
	"POST /groups":                                   `{"name":"New","path":"new"}`,
	"PUT /groups/{id}":                               `{"description":"Changed"}`,
	"POST /projects":                                 `{"name":"New"}`,
	"PUT /projects/{id}":                             `{"description":"Changed"}`,
	"POST /projects/{id}/members":                    fmt.Sprintf(`{"user_id":%d,"access_level":10}`, newcomerID),
	"POST /groups/{id}/members":                      fmt.Sprintf(`{"user_id":%d,"access_level":10}`, newcomerID),
	"PUT /projects/{id}/members/{user_id}":           `{"access_level":20}`,
	"PUT /groups/{id}/members/{user_id}":             `{"access_level":20}`,
	"POST /projects/{id}/deploy_keys":                fmt.Sprintf(`{"title":"New","key":%q}`, newPublicKey),
	"PUT /projects/{id}/deploy_keys/{key_id}":        `{"title":"Renamed"}`,
	"POST /projects/{id}/protected_branches":         `{"name":"release/*"}`,
	"PATCH /projects/{id}/protected_branches/{name}": `{"allow_force_push":true}`,
	"POST /projects/{id}/triggers":                   `{"description":"New"}`,
	"PUT /projects/{id}/triggers/{trigger_id}":       `{"description":"Renamed"}`,
	"GET /projects/{id}/badges/render":               `{"link_url":"https://ci.example","image_url":"https://ci.example/%{commit_sha}"}`,
	"POST /projects/{id}/badges":                     `{"link_url":"https://ci.example/%{project_path}","image_url":"https://ci.example/a.svg"}`,
	"PUT /projects/{id}/badges/{badge_id}":           `{"name":"Renamed"}`,
	"PATCH /projects/{id}/job_token_scope":           `{"enabled":false}`,
	"POST /projects/{id}/job_token_scope/allowlist":  fmt.Sprintf(`{"target_project_id":%d}`, thirdProjectID),
	"POST /projects/{id}/remote_mirrors":             `{"url":"https://ann:secret@example.com/app.git","enabled":true}`,
	"PUT /projects/{id}/remote_mirrors/{mirror_id}":  `{"keep_divergent_refs":true}`,
	"POST /projects/{id}/labels":                     `{"name":"new","color":"red"}`,
	"PUT /projects/{id}/labels/{label_id}":           `{"color":"red"}`,
	"PUT /projects/{id}/labels":                      `{"name":"bug","color":"red"}`,
	"DELETE /projects/{id}/labels":                   `{"name":"bug"}`,
	"PUT /projects/{id}/labels/promote":              `{"name":"bug"}`,
	"GET /projects/{id}/repository/compare":          `{"from":"main~1","to":"main"}`,
	"GET /projects/{id}/repository/changelog":        `{"version":"1.1.0"}`,
	"POST /projects/{id}/repository/changelog":       `{"version":"1.1.0","branch":"topic"}`,
	"GET /projects/{id}/repository/merge_base":       `{"refs":["main","HEAD"]}`,
	"POST /projects/{id}/repository/branches":        `{"branch":"new","ref":"main"}`,
	"POST /projects/{id}/repository/tags":            `{"tag_name":"v1.1.0","ref":"main"}`,

	"GET /projects/{id}/repository/files/{file_path}":    `{"ref":"main"}`,
	"POST /projects/{id}/repository/files/{file_path}":   `{"branch":"bare","commit_message":"New","content":"new"}`,
	"PUT /projects/{id}/repository/files/{file_path}":    `{"branch":"topic","commit_message":"Change","content":"changed"}`,
	"DELETE /projects/{id}/repository/files/{file_path}": `{"branch":"topic","commit_message":"Delete"}`,
	"POST /projects/{id}/repository/commits":             `{"branch":"topic","commit_message":"New","actions":[]}`,
}

// variants are further samples of endpoints for which it matters what exactly they are asked.
var variants = map[string][]sample{
	"POST /groups":   {{note: "below a group", in: "group", body: fmt.Sprintf(`{"name":"New","path":"new","parent_id":%d}`, groupID)}},
	"POST /projects": {{note: "in a group", in: "group", body: fmt.Sprintf(`{"name":"New","namespace_id":%d}`, groupID)}},
	"POST /projects/{id}/repository/changelog": {{note: "on a protected branch", body: `{"version":"1.1.0"}`}},
	"PUT /projects/{id}/labels": {
		{note: "one of the group", body: `{"name":"urgent","color":"red"}`},
		{note: "the priority of one of the group", body: `{"name":"urgent","priority":1}`},
	},
	"DELETE /projects/{id}/labels":             {{note: "one of the group", body: `{"name":"urgent"}`}},
	"GET /users/{id}":                          {ownUser("users/{id}")},
	"DELETE /projects/{id}/members/{user_id}":  {ownUser("members/{user_id}")},
	"DELETE /groups/{id}/members/{user_id}":    {ownUser("members/{user_id}")},
	"GET /personal_access_tokens/{id}":         {ownToken},
	"POST /personal_access_tokens/{id}/rotate": {ownToken},
	"DELETE /personal_access_tokens/{id}":      {ownToken},
	"PUT /projects/{id}/triggers/{trigger_id}": {{
		note: "his own", body: `{"description":"Renamed"}`, own: map[string]func(int64) int64{
			"triggers/{trigger_id}": func(user int64) int64 { return ownTriggerID + user },
		},
	}},
	"POST /users/{user_id}/personal_access_tokens": {{
		note: "his own", body: `{"name":"new","scopes":["api"]}`, own: ownUser("users/{user_id}").own,
	}},
}

func ownUser(parameter string) sample {
	return sample{note: "himself", own: map[string]func(int64) int64{parameter: func(user int64) int64 { return user }}}
}

var ownToken = sample{note: "his own", own: map[string]func(int64) int64{
	"personal_access_tokens/{id}": func(user int64) int64 { return 1000 + user },
}}

// samples are those of every endpoint of a handler, in the order of its tables.
func samples(h *endpoint.Handler) []sample {
	var all []sample
	for e := range h.Endpoints() {
		all = append(all, sample{endpoint: e, body: bodies[e.String()]})
		for _, v := range variants[e.String()] {
			v.endpoint = e
			all = append(all, v)
		}
	}
	return all
}

// changes reports whether an endpoint may write.
func changes(e *endpoint.Endpoint) bool { return e.Method() != http.MethodGet }
