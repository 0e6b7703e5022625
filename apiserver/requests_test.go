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

// sample is a request that succeeds if its caller is admitted.
type sample struct {
	endpoint *endpoint.Endpoint
	// note distinguishes several samples of one endpoint.
	note string
	// body is JSON; empty for none. In it, {user} stands for the id of the caller.
	body string
	// names are the parameters of the path that differ from those in named.
	names map[string]string
	// own are the parameters of the path that name the caller, or an object that belongs to the caller.
	own map[string]func(user int64) int64
	// in is the place in which direct members have their roles, if it does not follow from the path: "group".
	in string
	// refused is true if the request does not succeed for any caller.
	refused bool
}

// String names the sample in the table.
func (s sample) String() string {
	if s.note == "" {
		return s.endpoint.String()
	}
	return fmt.Sprintf("%s (%s)", s.endpoint, s.note)
}

// subject returns the subject of the sample: "project", "group" or "instance".
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

// text returns the body of the request for a user.
func (s sample) text(user int64) string {
	if user == 0 {
		user = targetID
	}
	return strings.ReplaceAll(s.body, "{user}", strconv.FormatInt(user, 10))
}

// target returns the path of the request for a user.
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
		segments[i] = cmp.Or(s.names[key], s.near()[key], named[key])
	}
	return strings.Join(segments, "/")
}

// near are the parameters of paths that differ from those in named below the place of the sample.
func (s sample) near() map[string]string {
	switch path := s.endpoint.Path(); {
	case strings.HasPrefix(path, "/groups/"):
		return namedInGroup
	case strings.HasPrefix(path, "/jobs/"):
		return namedOfRunner
	case strings.Contains(path, "/merge_requests/"):
		return namedInMergeRequest
	default:
		return nil
	}
}

// absent returns a sample that names an object that does not exist, instead of the object that this sample is about.
func (s sample) absent() sample {
	const id = "9999"
	if len(s.names) > 0 {
		s.names = maps.Clone(s.names)
		for key := range s.names {
			s.names[key] = id
		}
		return s
	}
	for _, known := range []int{projectID, groupID, hiddenGroupID} {
		if named := fmt.Sprintf(`_id":%d}`, known); strings.Contains(s.body, named) {
			s.body = strings.ReplaceAll(s.body, named, `_id":`+id+`}`)
			return s
		}
	}
	if segments := strings.Split(s.endpoint.Path(), "/"); len(segments) > 2 {
		s.names = map[string]string{segments[1] + "/" + segments[2]: id}
	}
	return s
}

// named are the parameters of paths, by the segment before them. All callers get 404 from an endpoint whose parameters are not listed here,
// which the test reports.
var named = map[string]string{
	"features/{name}":                    feature.SSHCertificates,
	"projects/{id}":                      strconv.Itoa(projectID),
	"groups/{id}":                        strconv.Itoa(groupID),
	"namespaces/{namespace}":             strconv.Itoa(groupID),
	"users/{id}":                         strconv.Itoa(targetID),
	"users/{user_id}":                    strconv.Itoa(targetID),
	"members/{user_id}":                  strconv.Itoa(targetID),
	"all/{user_id}":                      strconv.Itoa(targetID),
	"share/{group_id}":                   strconv.Itoa(invitedID),
	"deploy_keys/{key_id}":               strconv.Itoa(keyID),
	"protected_branches/{name}":          "main",
	"labels/{label_id}":                  "bug",
	"triggers/{trigger_id}":              strconv.Itoa(triggerID),
	"ref/{ref}":                          "ci",
	"statuses/{sha}":                     "ci",
	"access_tokens/{token_id}":           strconv.Itoa(projectTokenID),
	"badges/{badge_id}":                  strconv.Itoa(badgeID),
	"variables/{key}":                    "HOST",
	"allowlist/{target_project_id}":      strconv.Itoa(otherProjectID),
	"groups_allowlist/{target_group_id}": strconv.Itoa(friendsID),
	"fork/{forked_from_id}":              strconv.Itoa(otherProjectID),
	"repository_storage_moves/{repository_storage_id}":         strconv.Itoa(moveID),
	"project_repository_storage_moves/{repository_storage_id}": strconv.Itoa(moveID),
	"repositories/{repository_id}":                             "1",
	"repositories/{id}":                                        "1",
	"remote_mirrors/{mirror_id}":                               strconv.Itoa(mirrorID),
	"personal_access_tokens/{id}":                              strconv.Itoa(targetTokenID),
	"blobs/{sha}":                                              blobID,
	"branches/{branch}":                                        "topic",
	"tags/{tag_name}":                                          "v1.0.0",
	"commits/{sha}":                                            "signed",
	"files/{file_path}":                                        "README.md",
	"milestones/{milestone_id}":                                "1",
	"epics/{epic_id}":                                          "1",
	"issues/{issue_iid}":                                       "1",
	"notes/{note_id}":                                          "1",
	"award_emoji/{award_id}":                                   reactionTo("issue", targetID),
	"resource_state_events/{event_id}":                         "1",
	"discussions/{discussion_id}":                              "1",
	"issues/{id}":                                              "1",
	"merge_requests/{merge_request_iid}":                       "1",
	"versions/{version_id}":                                    "1",
	"approval_rules/{approval_rule_id}":                        "1",
	"pipelines/{pipeline_id}":                                  "1",
	"runners/{id}":                                             "1",
	"runners/{runner_id}":                                      "1",
	"jobs/{job_id}":                                            "1",
	"pipeline_schedules/{pipeline_schedule_id}":                "1",
	"artifacts/{ref_name}":                                     "main",
	"artifacts/{artifact_path}":                                "notes.txt",
	"raw/{artifact_path}":                                      "notes.txt",
}

// ofRunner is a request of runner 1.
var ofRunner = fmt.Sprintf(`{"token":%q}`, runnerToken)

// namedOfRunner has the parameters that differ below /jobs.
var namedOfRunner = map[string]string{"jobs/{job_id}": "4"}

// namedInGroup has the parameters that differ below /groups.
var namedInGroup = map[string]string{
	"labels/{label_id}":         "urgent",
	"access_tokens/{token_id}":  strconv.Itoa(groupTokenID),
	"badges/{badge_id}":         strconv.Itoa(groupBadgeID),
	"protected_branches/{name}": "stable",
	"milestones/{milestone_id}": "2",
	"notes/{note_id}":           "2",
	"award_emoji/{award_id}":    reactionTo("epic", targetID),

	"resource_state_events/{event_id}": "2",
	"discussions/{discussion_id}":      "2",
}

// namedInMergeRequest has the parameters that differ below a merge request.
var namedInMergeRequest = map[string]string{
	"notes/{note_id}":                  "3",
	"award_emoji/{award_id}":           reactionTo("merge request", targetID),
	"resource_state_events/{event_id}": "3",
	"discussions/{discussion_id}":      "3",
}

// others are the parameters of paths that differ from those in named for one endpoint.
var others = map[string]map[string]string{
	"POST /users/{id}/unban": {"users/{id}": strconv.Itoa(bannedID)},
	// All users take part in issue 1 and merge request 1, and so are subscribed.
	"POST /projects/{id}/issues/{issue_iid}/subscribe":                 {"issues/{issue_iid}": "2"},
	"POST /projects/{id}/merge_requests/{merge_request_iid}/subscribe": {"merge_requests/{merge_request_iid}": "2"},

	"GET " + reactionToNote:        {"award_emoji/{award_id}": reactionTo("note", targetID)},
	"DELETE " + reactionToNote:     {"award_emoji/{award_id}": reactionTo("note", targetID)},
	"GET " + reactionToEpicNote:    {"award_emoji/{award_id}": reactionTo("note on an epic", targetID)},
	"DELETE " + reactionToEpicNote: {"award_emoji/{award_id}": reactionTo("note on an epic", targetID)},

	"GET " + reactionToMergeRequestNote:    {"award_emoji/{award_id}": reactionTo("note on a merge request", targetID)},
	"DELETE " + reactionToMergeRequestNote: {"award_emoji/{award_id}": reactionTo("note on a merge request", targetID)},

	"GET " + draftNote:              targetDraftNote,
	"PUT " + draftNote:              targetDraftNote,
	"DELETE " + draftNote:           targetDraftNote,
	"PUT " + draftNote + "/publish": targetDraftNote,

	"GET /projects/{id}/approval_rules/{approval_rule_id}":    {"approval_rules/{approval_rule_id}": strconv.Itoa(projectRuleID)},
	"PUT /projects/{id}/approval_rules/{approval_rule_id}":    {"approval_rules/{approval_rule_id}": strconv.Itoa(projectRuleID)},
	"DELETE /projects/{id}/approval_rules/{approval_rule_id}": {"approval_rules/{approval_rule_id}": strconv.Itoa(projectRuleID)},

	"GET /jobs/{job_id}/artifacts":             {"jobs/{job_id}": "1"},
	"POST /projects/{id}/jobs/{job_id}/cancel": {"jobs/{job_id}": "2"},
	"POST /projects/{id}/jobs/{job_id}/play":   {"jobs/{job_id}": "3"},

	// Merge request 1 lacks an approval.
	"PUT /projects/{id}/merge_requests/{merge_request_iid}/merge":                                {"merge_requests/{merge_request_iid}": "2"},
	"POST /projects/{id}/merge_requests/{merge_request_iid}/cancel_merge_when_pipeline_succeeds": {"merge_requests/{merge_request_iid}": "2"},
	"POST /projects/{id}/merge_requests/{merge_request_iid}/pipelines":                           {"merge_requests/{merge_request_iid}": "3"},
	"POST /projects/{id}/merge_requests/{merge_request_iid}/unapprove":                           {"merge_requests/{merge_request_iid}": "2"},
}

// bodies are the bodies of the requests that need one.
var bodies = map[string]string{
	"POST /features/{name}":                                            `{"value":true}`,
	"PUT /application/settings":                                        `{"default_projects_limit":5}`,
	"POST /users":                                                      `{"email":"new@forge.example","name":"New","username":"new"}`,
	"PUT /users/{id}":                                                  `{"name":"Renamed"}`,
	"POST /users/{user_id}/personal_access_tokens":                     `{"name":"new","scopes":["api"]}`,
	"POST /groups":                                                     `{"name":"New","path":"new"}`,
	"PUT /groups/{id}":                                                 `{"description":"Changed"}`,
	"POST /projects":                                                   `{"name":"New"}`,
	"PUT /projects/{id}":                                               `{"description":"Changed"}`,
	"POST /projects/{id}/members":                                      fmt.Sprintf(`{"user_id":%d,"access_level":10}`, newcomerID),
	"POST /groups/{id}/members":                                        fmt.Sprintf(`{"user_id":%d,"access_level":10}`, newcomerID),
	"POST /projects/{id}/share":                                        fmt.Sprintf(`{"group_access":10,"group_id":%d}`, friendsID),
	"POST /groups/{id}/share":                                          fmt.Sprintf(`{"group_access":10,"group_id":%d}`, friendsID),
	"PUT /projects/{id}/members/{user_id}":                             `{"access_level":20}`,
	"PUT /groups/{id}/members/{user_id}":                               `{"access_level":20}`,
	"POST /projects/{id}/deploy_keys":                                  fmt.Sprintf(`{"title":"New","key":%q}`, newPublicKey),
	"PUT /projects/{id}/deploy_keys/{key_id}":                          `{"title":"Renamed"}`,
	"POST /projects/{id}/protected_branches":                           `{"name":"release/*"}`,
	"PATCH /projects/{id}/protected_branches/{name}":                   `{"allow_force_push":true}`,
	"POST /projects/{id}/triggers":                                     `{"description":"New"}`,
	"PUT /projects/{id}/triggers/{trigger_id}":                         `{"description":"Renamed"}`,
	"GET /projects/{id}/badges/render":                                 `{"link_url":"https://ci.example","image_url":"https://ci.example/%{commit_sha}"}`,
	"POST /projects/{id}/badges":                                       `{"link_url":"https://ci.example/%{project_path}","image_url":"https://ci.example/a.svg"}`,
	"PUT /projects/{id}/badges/{badge_id}":                             `{"name":"Renamed"}`,
	"POST /projects/{id}/variables":                                    `{"key":"NEW","value":"new"}`,
	"PUT /projects/{id}/variables/{key}":                               `{"value":"changed"}`,
	"POST /groups/{id}/variables":                                      `{"key":"NEW","value":"new"}`,
	"PUT /groups/{id}/variables/{key}":                                 `{"value":"changed"}`,
	"POST /admin/ci/variables":                                         `{"key":"NEW","value":"new"}`,
	"PUT /admin/ci/variables/{key}":                                    `{"value":"changed"}`,
	"PATCH /projects/{id}/job_token_scope":                             `{"enabled":false}`,
	"POST /projects/{id}/job_token_scope/groups_allowlist":             fmt.Sprintf(`{"target_group_id":%d}`, invitedID),
	"POST /projects/{id}/job_token_scope/allowlist":                    fmt.Sprintf(`{"target_project_id":%d}`, thirdProjectID),
	"POST /projects/{id}/remote_mirrors":                               `{"url":"https://ann:secret@example.com/app.git","enabled":true}`,
	"PUT /projects/{id}/remote_mirrors/{mirror_id}":                    `{"keep_divergent_refs":true}`,
	"POST /projects/{id}/labels":                                       `{"name":"new","color":"red"}`,
	"PUT /projects/{id}/labels/{label_id}":                             `{"color":"red"}`,
	"PUT /projects/{id}/labels":                                        `{"name":"bug","color":"red"}`,
	"DELETE /projects/{id}/labels":                                     `{"name":"bug"}`,
	"PUT /projects/{id}/labels/promote":                                `{"name":"bug"}`,
	"POST /groups/{id}/labels":                                         `{"name":"new","color":"red"}`,
	"PUT /groups/{id}/labels/{label_id}":                               `{"color":"red"}`,
	"PUT /groups/{id}/labels":                                          `{"name":"urgent","color":"red"}`,
	"DELETE /groups/{id}/labels":                                       `{"name":"urgent"}`,
	"GET /groups/{id}/badges/render":                                   `{"link_url":"https://ci.example","image_url":"https://ci.example/%{project_path}"}`,
	"POST /groups/{id}/badges":                                         `{"link_url":"https://ci.example/%{project_path}","image_url":"https://ci.example/a.svg"}`,
	"PUT /groups/{id}/badges/{badge_id}":                               `{"name":"Renamed"}`,
	"POST /groups/{id}/protected_branches":                             `{"name":"release/*"}`,
	"PATCH /groups/{id}/protected_branches/{name}":                     `{"allow_force_push":true}`,
	"GET /projects/{id}/repository/compare":                            `{"from":"main~1","to":"main"}`,
	"GET /projects/{id}/repository/changelog":                          `{"version":"1.1.0"}`,
	"POST /projects/{id}/repository/changelog":                         `{"version":"1.1.0","branch":"topic"}`,
	"GET /projects/{id}/repository/merge_base":                         `{"refs":["main","HEAD"]}`,
	"POST /projects/{id}/repository/branches":                          `{"branch":"new","ref":"main"}`,
	"POST /projects/{id}/repository/tags":                              `{"tag_name":"v1.1.0","ref":"main"}`,
	"POST /project_repository_storage_moves":                           `{"source_storage_name":"shard"}`,
	"POST /projects/{id}/repository_storage_moves":                     `{"destination_storage_name":"shard"}`,
	"DELETE /projects/{id}/registry/repositories/{repository_id}/tags": `{"name_regex_delete":"nothing"}`,
	"POST /projects/{id}/milestones":                                   `{"title":"New"}`,
	"PUT /projects/{id}/milestones/{milestone_id}":                     `{"title":"Renamed"}`,
	"POST /groups/{id}/milestones":                                     `{"title":"New"}`,
	"PUT /groups/{id}/milestones/{milestone_id}":                       `{"title":"Renamed"}`,
	"POST /groups/{id}/epics":                                          `{"title":"New"}`,
	"PUT /groups/{id}/epics/{epic_id}":                                 `{"title":"Renamed"}`,
	"POST /projects/{id}/issues/{issue_iid}/notes":                     `{"body":"New"}`,
	"PUT /projects/{id}/issues/{issue_iid}/notes/{note_id}":            `{"body":"Changed"}`,
	"POST /projects/{id}/issues/{issue_iid}/discussions":               `{"body":"New"}`,
	"POST /groups/{id}/epics/{epic_id}/notes":                          `{"body":"New"}`,
	"PUT /groups/{id}/epics/{epic_id}/notes/{note_id}":                 `{"body":"Changed"}`,
	"POST /groups/{id}/epics/{epic_id}/discussions":                    `{"body":"New"}`,
	"POST /projects/{id}/issues":                                       `{"title":"New"}`,
	"PUT /projects/{id}/issues/{issue_iid}":                            `{"title":"Renamed"}`,
	"POST /projects/{id}/merge_requests":                               `{"title":"New","source_branch":"new","target_branch":"main"}`,
	"PUT /projects/{id}/merge_requests/{merge_request_iid}":            `{"title":"Renamed"}`,
	"PUT /user/avatar":                                                 `{"avatar":""}`,
	"PUT /projects/{id}/transfer":                                      fmt.Sprintf(`{"namespace":%d}`, roomID),
	"POST /projects/{id}/access_tokens":                                `{"name":"Robot","scopes":["api"],"access_level":30}`,
	"POST /groups/{id}/access_tokens":                                  `{"name":"Robot","scopes":["api"],"access_level":30}`,

	"GET /projects/{id}/repository/files/{file_path}":                                   `{"ref":"main"}`,
	"POST /projects/{id}/repository/files/{file_path}":                                  `{"branch":"bare","commit_message":"New","content":"new"}`,
	"PUT /projects/{id}/repository/files/{file_path}":                                   `{"branch":"topic","commit_message":"Change","content":"changed"}`,
	"DELETE /projects/{id}/repository/files/{file_path}":                                `{"branch":"topic","commit_message":"Delete"}`,
	"PUT /projects/{id}/issues/{issue_iid}/discussions/{discussion_id}":                 `{"resolved":true}`,
	"POST /projects/{id}/issues/{issue_iid}/discussions/{discussion_id}/notes":          `{"body":"New"}`,
	"PUT /projects/{id}/issues/{issue_iid}/discussions/{discussion_id}/notes/{note_id}": `{"body":"Changed"}`,
	"PUT /groups/{id}/epics/{epic_id}/discussions/{discussion_id}":                      `{"resolved":true}`,
	"POST /groups/{id}/epics/{epic_id}/discussions/{discussion_id}/notes":               `{"body":"New"}`,
	"PUT /groups/{id}/epics/{epic_id}/discussions/{discussion_id}/notes/{note_id}":      `{"body":"Changed"}`,

	"POST /projects/{id}/pipeline":                   `{"ref":"ci"}`,
	"POST /projects/{id}/statuses/{sha}":             `{"state":"success"}`,
	"POST /projects/{id}/trigger/pipeline":           fmt.Sprintf(`{"ref":"ci","token":%q}`, triggerValue(triggerID)),
	"POST /projects/{id}/ref/{ref}/trigger/pipeline": fmt.Sprintf(`{"token":%q}`, triggerValue(triggerID)),
	"GET /projects/{id}/pipelines/latest":            `{"ref":"topic"}`,

	"POST /projects/{id}/pipeline_schedules":                                       `{"description":"New","ref":"ci","cron":"0 3 * * *"}`,
	"PUT /projects/{id}/pipeline_schedules/{pipeline_schedule_id}":                 `{"description":"Changed"}`,
	"POST /projects/{id}/pipeline_schedules/{pipeline_schedule_id}/variables":      `{"key":"NEW","value":"new"}`,
	"PUT /projects/{id}/pipeline_schedules/{pipeline_schedule_id}/variables/{key}": `{"value":"changed"}`,

	"GET /projects/{id}/jobs/artifacts/{ref_name}/download":            `{"job":"build"}`,
	"GET /projects/{id}/jobs/artifacts/{ref_name}/raw/{artifact_path}": `{"job":"build"}`,
	"GET /jobs/{job_id}/artifacts":                                     fmt.Sprintf(`{"token":%q}`, jobToken),

	"POST /user/runners":                       `{"runner_type":"instance_type"}`,
	"PUT /runners/{id}":                        `{"description":"Renamed"}`,
	"POST /projects/{id}/runners":              `{"runner_id":1}`,
	"POST /runners":                            fmt.Sprintf(`{"token":%q,"description":"New"}`, registrationToken),
	"POST /runners/verify":                     ofRunner,
	"DELETE /runners":                          ofRunner,
	"DELETE /runners/managers":                 ofRunner,
	"POST /runners/reset_authentication_token": ofRunner,
	"POST /jobs/request":                       ofRunner,
	"PUT /jobs/{job_id}":                       fmt.Sprintf(`{"token":%q,"state":"success"}`, jobToken),

	"POST /markdown":                         `{"text":"# Hello"}`,
	"POST /projects/{id}/ci/lint":            `{"content":"test: {script: make}"}`,
	"POST /projects/{id}/repository/commits": `{"branch":"topic","commit_message":"New","actions":[]}`,

	"POST /projects/{id}/issues/{issue_iid}/time_estimate":                  `{"duration":"1h"}`,
	"POST /projects/{id}/issues/{issue_iid}/add_spent_time":                 `{"duration":"1h"}`,
	"POST /projects/{id}/merge_requests/{merge_request_iid}/time_estimate":  `{"duration":"1h"}`,
	"POST /projects/{id}/merge_requests/{merge_request_iid}/add_spent_time": `{"duration":"1h"}`,

	"POST /projects/{id}/issues/{issue_iid}/award_emoji":                 `{"name":"tada"}`,
	"POST /projects/{id}/issues/{issue_iid}/notes/{note_id}/award_emoji": `{"name":"tada"}`,
	"POST /groups/{id}/epics/{epic_id}/award_emoji":                      `{"name":"tada"}`,
	"POST /groups/{id}/epics/{epic_id}/notes/{note_id}/award_emoji":      `{"name":"tada"}`,

	"POST /projects/{id}/merge_requests/{merge_request_iid}/notes":                                      `{"body":"New"}`,
	"PUT /projects/{id}/merge_requests/{merge_request_iid}/notes/{note_id}":                             `{"body":"Changed"}`,
	"POST /projects/{id}/merge_requests/{merge_request_iid}/discussions":                                `{"body":"New"}`,
	"PUT /projects/{id}/merge_requests/{merge_request_iid}/discussions/{discussion_id}":                 `{"resolved":true}`,
	"POST /projects/{id}/merge_requests/{merge_request_iid}/discussions/{discussion_id}/notes":          `{"body":"New"}`,
	"PUT /projects/{id}/merge_requests/{merge_request_iid}/discussions/{discussion_id}/notes/{note_id}": `{"body":"Changed"}`,
	"POST /projects/{id}/merge_requests/{merge_request_iid}/award_emoji":                                `{"name":"tada"}`,
	"POST /projects/{id}/merge_requests/{merge_request_iid}/notes/{note_id}/award_emoji":                `{"name":"tada"}`,
	"POST /projects/{id}/merge_requests/{merge_request_iid}/approval_rules":                             `{"name":"New","approvals_required":1}`,
	"PUT /projects/{id}/merge_requests/{merge_request_iid}/approval_rules/{approval_rule_id}":           `{"name":"Renamed"}`,
	"POST /projects/{id}/merge_requests/{merge_request_iid}/draft_notes":                                `{"note":"New"}`,
	"PUT " + draftNote:                                     `{"note":"Changed"}`,
	"POST /projects/{id}/approvals":                        `{"approvals_before_merge":1}`,
	"POST /projects/{id}/approval_rules":                   `{"name":"New","approvals_required":1}`,
	"PUT /projects/{id}/approval_rules/{approval_rule_id}": `{"name":"Renamed"}`,
}

// idle are the endpoints whose request without a note has nothing to do for any caller.
var idle = map[string]bool{
	"DELETE /projects/{id}/fork": true,
	// Discussions on issues and epics cannot be resolved.
	"PUT /projects/{id}/issues/{issue_iid}/discussions/{discussion_id}": true,
	"PUT /groups/{id}/epics/{epic_id}/discussions/{discussion_id}":      true,
	// Only a header or the query has the job token.
	"PATCH /jobs/{job_id}/trace": true, "POST /jobs/{job_id}/artifacts": true,
	// The draft note of another user is missing.
	"GET " + draftNote:              true,
	"PUT " + draftNote:              true,
	"DELETE " + draftNote:           true,
	"PUT " + draftNote + "/publish": true,
}

// variants are further samples of endpoints whose answer depends on the parameters of the request.
var variants = map[string][]sample{
	"GET /issues":         {{note: "all that the caller sees", body: `{"scope":"all"}`}},
	"GET /merge_requests": {{note: "all that the caller sees", body: `{"scope":"all"}`}},
	"GET /users/{id}":     {ownUser("users/{id}")},
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
	"POST /markdown": {{note: "about a project", in: "project", body: fmt.Sprintf(`{"text":"x","project":%q}`, strconv.Itoa(projectID))}},
	"GET /users/{user_id}/projects": {{
		note: "of a user without a public project", names: map[string]string{"users/{user_id}": strconv.Itoa(newcomerID)},
	}},
	"GET /namespaces/{namespace}/exists": {
		{note: "below a group", body: fmt.Sprintf(`{"parent_id":%d}`, aboveID), names: map[string]string{"namespaces/{namespace}": "team"}},
	},
	"GET /namespaces/{namespace}": {{note: "by its path", names: map[string]string{"namespaces/{namespace}": "above%2Fteam"}}},
	"POST /user/runners": {
		{note: "of a project", body: fmt.Sprintf(`{"runner_type":"project_type","project_id":%d}`, projectID), in: "project"},
		{note: "of a group", body: fmt.Sprintf(`{"runner_type":"group_type","group_id":%d}`, groupID), in: "group"},
	},
	"POST /groups":               {{note: "below a group", in: "group", body: fmt.Sprintf(`{"name":"New","path":"new","parent_id":%d}`, groupID)}},
	"POST /projects":             {{note: "in a group", in: "group", body: fmt.Sprintf(`{"name":"New","namespace_id":%d}`, groupID)}},
	"DELETE /projects/{id}/fork": {{note: "of a fork", in: "group", names: map[string]string{"projects/{id}": strconv.Itoa(thirdProjectID)}}},
	"POST /projects/{id}/fork/{forked_from_id}": {
		{note: "a hidden project", names: map[string]string{"fork/{forked_from_id}": strconv.Itoa(exposedProjectID)}},
	},
	"GET /projects/{id}": {
		{note: "by its path", names: map[string]string{"projects/{id}": "above%2Fteam%2Fapp"}},
		{note: "a public one in a private group", names: map[string]string{"projects/{id}": strconv.Itoa(exposedProjectID)}},
	},

	"POST /projects/{id}/members": {
		{note: "as a Maintainer", body: fmt.Sprintf(`{"user_id":%d,"access_level":40}`, newcomerID)},
		{note: "as an Owner", body: fmt.Sprintf(`{"user_id":%d,"access_level":50}`, newcomerID)},
	},
	"POST /projects/{id}/share": {
		{note: "as an Owner", body: fmt.Sprintf(`{"group_access":50,"group_id":%d}`, friendsID)},
		{note: "with a hidden group", body: fmt.Sprintf(`{"group_access":10,"group_id":%d}`, hiddenGroupID)},
	},
	"POST /groups/{id}/share":                 {{note: "with a hidden group", body: fmt.Sprintf(`{"group_access":10,"group_id":%d}`, hiddenGroupID)}},
	"DELETE /projects/{id}/share/{group_id}":  {{note: "with a hidden group", names: map[string]string{"share/{group_id}": strconv.Itoa(veiledID)}}},
	"DELETE /groups/{id}/share/{group_id}":    {{note: "with a hidden group", names: map[string]string{"share/{group_id}": strconv.Itoa(veiledID)}}},
	"DELETE /projects/{id}/members/{user_id}": {ownUser("members/{user_id}")},
	"DELETE /groups/{id}/members/{user_id}":   {ownUser("members/{user_id}")},

	"POST /projects/{id}/deploy_keys/{key_id}/enable": {
		{note: "a key of a hidden project", names: map[string]string{"deploy_keys/{key_id}": strconv.Itoa(exposedKeyID)}},
	},
	"POST /projects/{id}/access_tokens": {
		{note: "of an Owner", body: `{"name":"Robot","scopes":["api"],"access_level":50}`},
	},
	"POST /projects/{id}/access_tokens/{token_id}/rotate": {
		{note: "of an Owner", names: map[string]string{"access_tokens/{token_id}": strconv.Itoa(ownerTokenID)}},
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
	"POST /projects/{id}/job_token_scope/groups_allowlist": {
		{note: "a hidden group", body: fmt.Sprintf(`{"target_group_id":%d}`, hiddenGroupID)},
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
	"PUT /groups/{id}/labels/{label_id}":       {{note: "one of the group above", body: `{"color":"red"}`, names: aboveLabel, refused: true}},
	"DELETE /groups/{id}/labels/{label_id}":    {{note: "one of the group above", names: aboveLabel, refused: true}},
	"GET /groups/{id}/labels/{label_id}":       {{note: "one of the group above", names: aboveLabel}},
	"POST /projects/{id}/repository/changelog": {{note: "on a protected branch", body: `{"version":"1.1.0"}`}},

	"DELETE /projects/{id}/issues/{issue_iid}/award_emoji/{award_id}":                                      {ownReaction("issue")},
	"DELETE " + reactionToNote:                                                                             {ownReaction("note")},
	"DELETE /groups/{id}/epics/{epic_id}/award_emoji/{award_id}":                                           {ownReaction("epic")},
	"DELETE " + reactionToEpicNote:                                                                         {ownReaction("note on an epic")},
	"PUT /projects/{id}/issues/{issue_iid}/notes/{note_id}":                                                {ownNote(0, `{"body":"Changed"}`)},
	"DELETE /projects/{id}/issues/{issue_iid}/notes/{note_id}":                                             {ownNote(0, "")},
	"PUT /projects/{id}/issues/{issue_iid}/discussions/{discussion_id}/notes/{note_id}":                    {ownNote(0, `{"body":"Changed"}`)},
	"DELETE /projects/{id}/issues/{issue_iid}/discussions/{discussion_id}/notes/{note_id}":                 {ownNote(0, "")},
	"DELETE /projects/{id}/merge_requests/{merge_request_iid}/award_emoji/{award_id}":                      {ownReaction("merge request")},
	"DELETE " + reactionToMergeRequestNote:                                                                 {ownReaction("note on a merge request")},
	"PUT /projects/{id}/merge_requests/{merge_request_iid}/notes/{note_id}":                                {ownNote(2, `{"body":"Changed"}`)},
	"DELETE /projects/{id}/merge_requests/{merge_request_iid}/notes/{note_id}":                             {ownNote(2, "")},
	"PUT /projects/{id}/merge_requests/{merge_request_iid}/discussions/{discussion_id}/notes/{note_id}":    {ownNote(2, `{"body":"Changed"}`)},
	"DELETE /projects/{id}/merge_requests/{merge_request_iid}/discussions/{discussion_id}/notes/{note_id}": {ownNote(2, "")},
	"PUT /groups/{id}/epics/{epic_id}/notes/{note_id}":                                                     {ownNote(1, `{"body":"Changed"}`)},
	"DELETE /groups/{id}/epics/{epic_id}/notes/{note_id}":                                                  {ownNote(1, "")},
	"PUT /groups/{id}/epics/{epic_id}/discussions/{discussion_id}/notes/{note_id}":                         {ownNote(1, `{"body":"Changed"}`)},
	"DELETE /groups/{id}/epics/{epic_id}/discussions/{discussion_id}/notes/{note_id}":                      {ownNote(1, "")},

	"GET " + draftNote:              {ownDraftNote("")},
	"PUT " + draftNote:              {ownDraftNote(`{"note":"Changed"}`)},
	"DELETE " + draftNote:           {ownDraftNote("")},
	"PUT " + draftNote + "/publish": {ownDraftNote("")},
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

// samples returns the samples of all endpoints of a handler, in the order of its tables.
func samples(h *endpoint.Handler) []sample {
	var all []sample
	for e := range h.Endpoints() {
		all = append(all, sample{endpoint: e, body: bodies[e.String()], names: others[e.String()], refused: idle[e.String()]})
		for _, v := range variants[e.String()] {
			v.endpoint = e
			all = append(all, v)
		}
	}
	return all
}

// changes reports whether an endpoint may write.
func changes(e *endpoint.Endpoint) bool { return e.Method() != http.MethodGet }
