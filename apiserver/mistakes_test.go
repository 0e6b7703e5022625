package apiserver

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
)

// TestMistakes_areUnderstoodFromTheBodyAlone sends requests with mistakes that new users of the API make. The message or error is what
// clients compare; error_description says what it leaves open.
func TestMistakes_areUnderstoodFromTheBodyAlone(t *testing.T) {
	w := newWorld(t, v1alpha1.VisibilityPublic)
	as := func(r v1alpha1.Role) http.Header {
		return http.Header{"Private-Token": {familytest.Value(member("project", r))}, "Content-Type": {"application/json"}}
	}
	guest, developer, maintainer, owner := as(v1alpha1.RoleGuest), as(v1alpha1.RoleDeveloper), as(v1alpha1.RoleMaintainer), as(v1alpha1.RoleOwner)
	const (
		invalidToken = `401 {"message":"401 Unauthorized","error_description":"The access token is not valid: it may be unknown, expired or revoked."}`
		noToken      = `401 {"message":"401 Unauthorized","error_description":"The request has no access token: send one in the header PRIVATE-TOKEN, ` +
			`or in the header Authorization as Bearer. Other schemes, such as Token and Basic, do not count."}`
		noRoute = `404 {"error":"404 Not Found","error_description":"This server does not serve this path; https://forge.example/-/docs lists the ` +
			`paths that it serves. Each slash within a full path, a branch or the path of a file must be sent as %2F."}`
		badJSON = `400 {"error":"the body is not valid JSON","error_description":`
	)
	commit := func(branch, actions string) string {
		return `{"branch":"` + branch + `","commit_message":"Change","actions":[` + actions + `]}`
	}
	for name, tt := range map[string]struct {
		header        http.Header
		request, body string
		want          string
	}{
		"1 unknown token":          {http.Header{"Private-Token": {"wrong"}}, "GET /version", "", invalidToken},
		"1 unknown bearer token":   {http.Header{"Authorization": {"Bearer wrong"}}, "GET /user", "", invalidToken},
		"1 scheme of another API":  {http.Header{"Authorization": {"Token " + familytest.Value("admin")}}, "GET /user", "", noToken},
		"1 scheme of Git":          {http.Header{"Authorization": {"Basic YTpi"}}, "GET /user", "", noToken},
		"2 full path with a slash": {guest, "GET /projects/above/team/app", "", noRoute},
		"2 file with a slash":      {guest, "GET /projects/10/repository/files/docs/a.md?ref=main", "", noRoute},
		"3 missing parameters": {developer, "PUT /projects/10/labels", `{}`, `400 {"error":"label_id, name are missing, exactly one parameter must be provided, ` +
			`new_name, color, description, priority are missing, at least one parameter must be provided",` +
			`"error_description":"Send exactly one of: label_id, name. Send at least one of: new_name, color, description, priority."}`},
		"4 value of an enum": {owner, "PUT /projects/10", `{"visibility":"secret"}`, `400 {"error":"visibility does not have a valid value",` +
			`"error_description":"visibility must be private, internal or public."}`},
		"4 access level": {owner, "POST /projects/10/members", `{"user_id":2,"access_level":35}`, `400 {"message":{"access_level":["is not included in the list"]},` +
			`"error_description":"access_level must be 10 (Guest), 20 (Reporter), 30 (Developer), 40 (Maintainer) or 50 (Owner)."}`},
		"4 color": {developer, "POST /projects/10/labels", `{"name":"x","color":"brightred"}`, `400 {"message":{"color":["must be a valid color code"]},` +
			`"error_description":"color must be #RGB, #RRGGBB or the name of a CSS color, such as red."}`},
		"5 JSON with a mistake": {developer, "POST /projects/10/labels", "{\n \"name\": x}", badJSON + `"At line 2, column 10: invalid character 'x' looking for beginning of value."}`},
		"5 JSON that ends":      {developer, "POST /projects/10/labels", `{"name":"x"`, badJSON + `"It ends too early."}`},
		"5 more than JSON":      {developer, "POST /projects/10/labels", `{"name":"x"}}`, badJSON + `"There is more after the value that ends at line 1, column 12."}`},
		"5 other content": {http.Header{"Private-Token": developer["Private-Token"], "Content-Type": {"text/plain"}}, "POST /projects/10/labels", "x",
			`415 {"error":"The provided content-type 'text/plain' is not supported.","error_description":"The content-type must be application/json, application/x-www-form-urlencoded or multipart/form-data."}`},
		"6 duplicate":         {developer, "POST /projects/10/labels", `{"name":"bug","color":"red"}`, `409 {"message":"Label already exists"}`},
		"7 rows of a page":    {guest, "GET /projects?per_page=0", "", `400 {"error":"per_page has a value not allowed","error_description":"per_page must be 1 or more; a value above 100 counts as 100."}`},
		"7 number of a page":  {guest, "GET /projects?page=abc", "", `400 {"error":"page is invalid","error_description":"page must be an integer."}`},
		"8 role":              {guest, "POST /projects/10/labels", `{"name":"x","color":"red"}`, `403 {"message":"403 Forbidden","error_description":"This needs the role Reporter in the project, and you have the role Guest."}`},
		"8 no role":           {http.Header{"Private-Token": {familytest.Value("outsider")}}, "DELETE /groups/20", "", `403 {"message":"403 Forbidden","error_description":"This needs the role Owner in the group, and you have no role in it."}`},
		"8 administrator":     {guest, "POST /users", `{}`, `403 {"message":"403 Forbidden","error_description":"Only administrators can do this."}`},
		"9 absent object":     {guest, "GET /projects/10/labels/none", "", `404 {"message":"404 Label Not Found"}`},
		"9 absent endpoint":   {guest, "GET /projects/10/packages", "", noRoute},
		"10 which action":     {maintainer, "POST /projects/10/repository/commits", commit("topic", `{"action":"create","file_path":"a"},{"action":"create","file_path":"README.md"}`), `400 {"message":"A file with this name already exists","error_description":"actions[1] cannot be done, so none was. Its path is README.md."}`},
		"10 kind of action":   {maintainer, "POST /projects/10/repository/commits", commit("topic", `{"action":"add","file_path":"a"}`), `400 {"error":"actions[0][action] does not have a valid value","error_description":"actions[0][action] must be create, update, delete, move or chmod."}`},
		"10 new branch":       {maintainer, "POST /projects/10/repository/commits", commit("new", `{"action":"create","file_path":"a"}`), `400 {"message":"You can only create or edit files when you are on a branch","error_description":"There is no branch new. To create it, send in start_branch the branch at which it begins."}`},
		"10 name of a branch": {maintainer, "POST /projects/10/repository/branches", `{"branch":"HEAD","ref":"main"}`, `400 {"message":"Branch name is invalid","error_description":"A branch cannot be named HEAD or like the id of an object."}`},
		"10 protected branch": {developer, "POST /projects/10/repository/commits", commit("main", `{"action":"create","file_path":"a"}`), `403 {"message":"403 Forbidden - You are not allowed to push into this branch",` +
			`"error_description":"Branch \"main\" is protected by \"main\" (team/main): only Maintainers may push to it. You have the Developer role."}`},
	} {
		t.Run(name, func(t *testing.T) {
			method, target, _ := strings.Cut(tt.request, " ")
			r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(tt.body))
			r.Header = tt.header
			answer := httptest.NewRecorder()
			w.handler.ServeHTTP(answer, r)
			if got := fmt.Sprintf("%d %s", answer.Code, answer.Body); got != tt.want {
				t.Errorf("%s %s\ngot  %s\nwant %s", tt.request, tt.body, got, tt.want)
			}
		})
	}
}

func TestRefusal_saysWhichRoleIsMissing(t *testing.T) {
	w := newWorld(t, v1alpha1.VisibilityPublic)
	send := func(username, request, body string) *httptest.ResponseRecorder {
		method, target, _ := strings.Cut(request, " ")
		r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
		r.Header = http.Header{"Private-Token": {familytest.Value(username)}, "Content-Type": {"application/json"}}
		answer := httptest.NewRecorder()
		w.handler.ServeHTTP(answer, r)
		return answer
	}
	developer, maintainer, owner := member("project", v1alpha1.RoleDeveloper), member("project", v1alpha1.RoleMaintainer), member("project", v1alpha1.RoleOwner)
	for _, before := range []struct{ username, request, body string }{
		{owner, "POST /projects/10/members", `{"user_id":2,"access_level":50}`},
		{owner, "POST /projects/10/share", fmt.Sprintf(`{"group_id":%d,"group_access":50}`, friendsID)},
		{"outsider", "POST /groups", `{"name":"Solo","path":"solo"}`},
		{maintainer, "POST /projects/10/repository/branches", `{"branch":"release","ref":"main"}`},
		{"admin", "POST /projects/10/protected_branches", `{"name":"release","unprotect_access_level":60}`},
	} {
		if got := send(before.username, before.request, before.body); got.Code != http.StatusCreated {
			t.Fatalf("%s: %d %s", before.request, got.Code, got.Body)
		}
	}
	for _, tt := range []struct{ username, request, body, want string }{
		{maintainer, "PUT /projects/10", `{"visibility":"private"}`, `This needs the role Owner in the project, and you have the role Maintainer.`},
		{maintainer, "POST /projects/10/share", fmt.Sprintf(`{"group_id":%d,"group_access":50}`, invitedID), `You have the role Maintainer, and cannot give a higher one.`},
		{maintainer, fmt.Sprintf("DELETE /projects/10/share/%d", friendsID), "", `You have the role Maintainer, and cannot remove a share with a higher one.`},
		{maintainer, "DELETE /projects/10/members/2", "", `You have the role Maintainer, and cannot change or remove a member with a higher one.`},
		{"outsider", "DELETE /groups/solo/members/2", "", `This is the last Owner of the group: give another member the role first.`},
		{"external", "POST /groups", `{"name":"x","path":"x"}`, `You cannot create a root group with this path: send the id of a parent group in parent_id.`},
		{"external", "POST /projects", `{"name":"x"}`, `External users have no personal namespace: name the group to create the project in.`},
		{maintainer, "DELETE /projects/10/protected_branches/release", "", `Only administrators may change or remove the protection of \"release\". You have the Maintainer role.`},
		{maintainer, "DELETE /projects/10/repository/branches/release", "", `only administrators may delete it. You have the Maintainer role.`},
		{developer, "GET /personal_access_tokens?user_id=2", "", `Only administrators can list the access tokens of other users.`},
		{maintainer, fmt.Sprintf("POST /projects/10/access_tokens/%d/rotate", ownerTokenID), "", `The token has the role Owner, and you have the role Maintainer.`},
		{maintainer, "POST /projects/10/access_tokens", `{"name":"x","scopes":["api"],"access_level":50}`, `You have the role Maintainer, and cannot give a higher one.`},
	} {
		if got := send(tt.username, tt.request, tt.body); got.Code < 400 || !strings.Contains(got.Body.String(), tt.want) {
			t.Errorf("%s %s: %d %s", tt.request, tt.body, got.Code, got.Body)
		}
	}
}

// TestMistakes_doNotTellWhatIsHidden compares the answers about a hidden project with those about one that does not exist.
func TestMistakes_doNotTellWhatIsHidden(t *testing.T) {
	w := newWorld(t, v1alpha1.VisibilityPrivate)
	for _, value := range []string{"", familytest.Value("outsider")} {
		for _, request := range []string{"GET /projects/%d", "POST /projects/%d/labels", "DELETE /projects/%d", "GET /projects/%d/members", "POST /projects/%d/repository/commits"} {
			ask := func(id int) string {
				method, target, _ := strings.Cut(fmt.Sprintf(request, id), " ")
				r := httptest.NewRequestWithContext(t.Context(), method, target, http.NoBody)
				if value != "" {
					r.Header.Set("Private-Token", value)
				}
				answer := httptest.NewRecorder()
				w.handler.ServeHTTP(answer, r)
				return fmt.Sprintf("%d %s", answer.Code, answer.Body)
			}
			if hidden, absent := ask(projectID), ask(999); hidden != absent || strings.Contains(hidden, "role") {
				t.Errorf("%s: the hidden one is answered %s, the absent one %s", request, hidden, absent)
			}
		}
	}
}
