package apiserver

import (
	"net/http"
	"strings"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/bottoken"
)

// caller is a kind of caller, a column of the table.
type caller struct {
	// group and name are the head of the column. A slash in a name is a line break.
	group, name string
	// sign adds the caller's credentials to a request. The subject is what the request is about: "project", "group" or "instance".
	sign func(r *http.Request, subject string) *http.Request
	// user is the id of the user that the caller acts as, for requests that users may only make about themselves; 0 for no user.
	user func(subject string) int64
}

// String returns the name of the caller in failures.
func (c caller) String() string {
	return strings.TrimPrefix(c.group+", "+strings.NewReplacer("-/", "", "/", " ").Replace(c.name), ", ")
}

// place returns the place in which callers have their roles. For requests about the whole instance it is the project.
func place(subject string) string {
	if subject == "group" {
		return "group"
	}
	return "project"
}

func nobody(string) int64 { return 0 }

func is(id int64) func(string) int64 { return func(string) int64 { return id } }

// withToken returns a caller who presents a token.
func withToken(group, name, value string, user func(string) int64) caller {
	return caller{group, name, func(r *http.Request, _ string) *http.Request {
		r.Header.Set("PRIVATE-TOKEN", value)
		return r
	}, user}
}

var short = map[v1alpha1.Role]string{
	v1alpha1.RoleGuest: "Gu-/est", v1alpha1.RoleReporter: "Rep-/ort", v1alpha1.RoleDeveloper: "Dev-/el",
	v1alpha1.RoleMaintainer: "Main/tain", v1alpha1.RoleOwner: "Own-/er",
}

// known returns a caller with a role who presents a token.
func known(group string, r v1alpha1.Role, in func(subject string) string) caller {
	return caller{group, short[r], func(req *http.Request, subject string) *http.Request {
		req.Header.Set("PRIVATE-TOKEN", familytest.Value(member(in(subject), r)))
		return req
	}, func(subject string) int64 { return memberID(in(subject), r) }}
}

// identity returns a caller with a Kubernetes identity.
func identity(name string, of func(subject string) string, user func(string) int64) caller {
	return caller{"Kubernetes", name, func(r *http.Request, subject string) *http.Request {
		return r.WithContext(auth.WithIdentity(r.Context(), of(subject)))
	}, user}
}

func always(text string) func(string) string { return func(string) string { return text } }

// bot returns a caller who presents the token of a bot of the project or group that requests are about, or always that of the other bot.
func bot(name string, token func(subject string) int64) caller {
	return caller{"bot of", name, func(r *http.Request, subject string) *http.Request {
		r.Header.Set("PRIVATE-TOKEN", botValue(token(subject)))
		return r
	}, func(subject string) int64 {
		return bottoken.UserID(&v1alpha1.BotToken{Spec: v1alpha1.BotTokenSpec{ID: token(subject)}})
	}}
}

const directly, throughGroup = "direct member", "member of the group above"

var inTwoLines = map[v1alpha1.TokenScope]string{
	v1alpha1.ScopeAPI: "api", v1alpha1.ScopeReadAPI: "read/api", v1alpha1.ScopeReadUser: "read/user", v1alpha1.ScopeSudo: "sudo",
	v1alpha1.ScopeReadRepository: "read/repo", v1alpha1.ScopeWriteRepository: "wri-/repo",
	v1alpha1.ScopeReadRegistry: "read/regi", v1alpha1.ScopeWriteRegistry: "wri-/regi",
}

// callers are the columns of the table.
func callers() []caller {
	all := []caller{
		{"nobody", "no/tokn", func(r *http.Request, _ string) *http.Request { return r }, nobody},
		withToken("nobody", "un-/knwn", "a-token-that-nobody-knows", nobody),
		withToken("nobody", "ex-/pird", "expired", nobody),
		withToken("nobody", "re-/vokd", "revoked", nobody),
		withToken("nobody", "blo-/ckd", familytest.Value("blocked"), nobody),
		withToken("out", "sid-/er", familytest.Value("outsider"), is(2)),
	}
	for _, r := range roles {
		all = append(all, known(directly, r, place))
	}
	for _, r := range roles {
		all = append(all, known(throughGroup, r, always("above")))
	}
	all = append(all,
		withToken("via", "sha-/re", familytest.Value("friend"), is(4)),
		withToken("ext", "ern-/al", familytest.Value("external"), is(5)),
		withToken("aud", "it-/or", familytest.Value("auditor"), is(6)),
		bot(short[v1alpha1.RoleMaintainer], func(subject string) int64 {
			if place(subject) == "group" {
				return groupBotID
			}
			return projectBotID
		}),
		bot("oth-/er", is(otherBotID)),
		withToken("adm", "all", familytest.Value("admin"), is(1)))
	for _, s := range scopes {
		all = append(all, withToken(byScope, inTwoLines[s], "scope-"+string(s), is(1)))
	}
	return append(all,
		caller{"sud", short[v1alpha1.RoleReporter], func(r *http.Request, subject string) *http.Request {
			r.Header.Set("PRIVATE-TOKEN", "api-and-sudo")
			r.Header.Set("Sudo", member(place(subject), v1alpha1.RoleReporter))
			return r
		}, func(subject string) int64 { return memberID(place(subject), v1alpha1.RoleReporter) }},
		identity("no/User", always("system:serviceaccount:ci:stranger"), nobody),
		identity(short[v1alpha1.RoleMaintainer], func(subject string) string {
			return "system:serviceaccount:ci:" + member(place(subject), v1alpha1.RoleMaintainer)
		}, func(subject string) int64 { return memberID(place(subject), v1alpha1.RoleMaintainer) }),
		identity("clus/adm", always(clusterAdministrator), nobody),
	)
}

// byScope is the head of the columns of tokens with one scope each. They belong to the administrator, so only the scope limits them.
const byScope = "administrator's token of scope"
