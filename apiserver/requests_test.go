package apiserver

import (
	"cmp"
	"fmt"
	"maps"
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
	// body is JSON; empty for none. In it, {user} stands for the id of the caller.
	body string
	// names are the parameters of the path that differ from those in named.
	names map[string]string
	// own are the parameters of the path that name the caller, or an object that belongs to the caller.
	own map[string]func(user int64) int64
	// in says in which place direct members have their roles, if the path does not say it: "group".
	in string
	// refused says that the request succeeds for nobody.
	refused bool
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

// text returns the body of the request of a user.
func (s sample) text(user int64) string {
	if user == 0 {
		user = targetID
	}
	return strings.ReplaceAll(s.body, "{user}", strconv.FormatInt(user, 10))
}

// target returns the path of the request of a user.
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
		segments[i] = cmp.Or(s.names[key], named[key])
	}
	return strings.Join(segments, "/")
}

// absent returns a sample that names, instead of the object that this one is about, an object that does not exist.
func (s sample) absent() sample {
	const id = "9999"
	if len(s.names) > 0 {
		s.names = maps.Clone(s.names)
		for key := range s.names {
			s.names[key] = id
		}
		return s
	}
	for _, known := range []int{projectID, groupID} {
		s.body = strings.ReplaceAll(s.body, fmt.Sprintf(`_id":%d}`, known), `_id":`+id+`}`)
	}
	if segments := strings.Split(s.endpoint.Path(), "/"); len(segments) > 2 {
		s.names = map[string]string{segments[1] + "/" + segments[2]: id}
	}
	return s
}

// named are the parameters of paths, by the segment before them. All callers get 404 from an endpoint whose parameters are not listed here,
// which the test reports.
var named = map[string]string{
	"features/{name}":               feature.SSHCertificates,
	"projects/{id}":                 strconv.Itoa(projectID),
	"groups/{id}":                   strconv.Itoa(groupID),
	"namespaces/{namespace}":        strconv.Itoa(groupID),
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

// variants are further samples of endpoints whose answer depends on what exactly the request asks for.
var variants = map[string][]sample{
	"GET /users/{id}": {ownUser("users/{id}")},
	"POST /users/{user_id}/personal_access_tokens": {{
		note: "their own", body: `{"name":"new","scopes":["api"]}`, own: ownUser("users/{user_id}").own,
	}},
	"GET /personal_access_tokens": {
		{note: "of another user", body: fmt.Sprintf(`{"user_id":%d}`, targetID)},
		{note: "their own", body: `{"user_id":{user}}`},
	},
	"GET /personal_access_tokens/{id}":         {ownToken, missingToken, lostToken},
	"POST /personal_access_tokens/{id}/rotate": {ownToken, missingToken},
	"DELETE /personal_access_tokens/{id}":      {ownToken, missingToken},

	"GET /groups/{id}": {
		{note: "by its path", names: map[string]string{"groups/{id}": "above%2Fteam"}},
		{note: "an id that is too large", names: map[string]string{"groups/{id}": "99999999999999999999"}, refused: true},
	},
	"GET /namespaces/{namespace}": {{note: "by its path", names: map[string]string{"namespaces/{namespace}": "above%2Fteam"}}},
	"POST /groups":                {{note: "below a group", in: "group", body: fmt.Sprintf(`{"name":"New","path":"new","parent_id":%d}`, groupID)}},
	"POST /projects":              {{note: "in a group", in: "group", body: fmt.Sprintf(`{"name":"New","namespace_id":%d}`, groupID)}},
	"GET /projects/{id}": {
		{note: "by its path", names: map[string]string{"projects/{id}": "above%2Fteam%2Fapp"}},
		{note: "a public one in a private group", names: map[string]string{"projects/{id}": strconv.Itoa(exposedProjectID)}},
	},

	"POST /projects/{id}/members": {
		{note: "as a Maintainer", body: fmt.Sprintf(`{"user_id":%d,"access_level":40}`, newcomerID)},
		{note: "as an Owner", body: fmt.Sprintf(`{"user_id":%d,"access_level":50}`, newcomerID)},
	},
	"DELETE /projects/{id}/members/{user_id}": {ownUser("members/{user_id}")},
	"DELETE /groups/{id}/members/{user_id}":   {ownUser("members/{user_id}")},

	"POST /projects/{id}/deploy_keys/{key_id}/enable": {
		{note: "a key of a hidden project", names: map[string]string{"deploy_keys/{key_id}": strconv.Itoa(exposedKeyID)}},
	},
	"PUT /projects/{id}/triggers/{trigger_id}": {
		{note: "their own", body: `{"description":"Renamed"}`, own: map[string]func(int64) int64{
			"triggers/{trigger_id}": func(user int64) int64 { return ownTriggerID + user },
		}},
		{
			note: "one without an owner", body: `{"description":"Renamed"}`,
			names: map[string]string{"triggers/{trigger_id}": strconv.Itoa(ownerlessTriggerID)}, refused: true,
		},
	},
	"DELETE /projects/{id}/triggers/{trigger_id}": {
		{note: "one without an owner", names: map[string]string{"triggers/{trigger_id}": strconv.Itoa(ownerlessTriggerID)}},
	},
	"POST /projects/{id}/job_token_scope/allowlist": {
		{note: "a hidden project", body: fmt.Sprintf(`{"target_project_id":%d}`, exposedProjectID)},
	},
	"DELETE /projects/{id}/job_token_scope/allowlist/{target_project_id}": {
		{note: "a hidden project", names: map[string]string{"allowlist/{target_project_id}": strconv.Itoa(listedProjectID)}},
	},

	"PUT /projects/{id}/labels": {
		{note: "one of the group", body: `{"name":"urgent","color":"red"}`},
		{note: "the priority of one of the group", body: `{"name":"urgent","priority":1}`},
		{note: "the priority and the name of one of the group", body: `{"name":"urgent","priority":1,"new_name":"new"}`},
	},
	"PUT /projects/{id}/labels/{label_id}": {
		{note: "one of the group", body: `{"color":"red"}`, names: groupLabel},
		{note: "the priority of one of the group", body: `{"priority":1}`, names: groupLabel},
		{note: "one of the group above, by members of the group", in: "group", body: `{"color":"red"}`, names: aboveLabel},
		{note: "the priority of one of the group above, by members of the group", in: "group", body: `{"priority":null}`, names: aboveLabel},
	},
	"DELETE /projects/{id}/labels": {{note: "one of the group", body: `{"name":"urgent"}`}},
	"DELETE /projects/{id}/labels/{label_id}": {
		{note: "one of the group", names: groupLabel},
		{note: "one of the group above, by members of the group", in: "group", names: aboveLabel},
	},
	"POST /projects/{id}/repository/changelog": {{note: "on a protected branch", body: `{"version":"1.1.0"}`}},
}

var (
	groupLabel = map[string]string{"labels/{label_id}": "urgent"}
	aboveLabel = map[string]string{"labels/{label_id}": "legal"}

	ownToken = sample{note: "their own", own: map[string]func(int64) int64{
		"personal_access_tokens/{id}": func(user int64) int64 { return 1000 + user },
	}}
	missingToken = sample{
		note: "one that does not exist", names: map[string]string{"personal_access_tokens/{id}": "9999"}, refused: true,
	}
	lostToken = sample{
		note: "one of a user who does not exist", names: map[string]string{"personal_access_tokens/{id}": strconv.Itoa(lostTokenID)}, refused: true,
	}
)

func ownUser(parameter string) sample {
	return sample{note: "themselves", own: map[string]func(int64) int64{parameter: func(user int64) int64 { return user }}}
}

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
