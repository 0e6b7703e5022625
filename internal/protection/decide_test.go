package protection_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/internal/git/update"
	. "github.com/forgeplane/forgeplane/internal/protection"
	"github.com/forgeplane/forgeplane/internal/role"
)

// The actors.
var (
	nobody     = Actor{UserID: 9}
	guest      = Actor{UserID: 10, Role: role.Guest}
	reporter   = Actor{UserID: 20, Role: role.Reporter}
	developer  = Actor{UserID: 30, Role: role.Developer}
	maintainer = Actor{UserID: 40, Role: role.Maintainer}
	owner      = Actor{UserID: 50, Role: role.Owner}
	admin      = Actor{UserID: 60, Admin: true}
	alice      = Actor{UserID: 1, Role: role.Developer}
	alicia     = Actor{UserID: 1, Role: role.Reporter}
	grouped    = Actor{UserID: 2, Role: role.Developer, InGroup: memberOf(7)}
	writeKey   = Actor{DeployKey: DeployKey{ID: 5, Title: "ci", CanWrite: true}}
	readKey    = Actor{DeployKey: DeployKey{ID: 5, Title: "ci"}}
	helper     = Actor{UserID: 70, Role: role.Reporter, Collaborates: collaboratesIn("topic")}
	lost       = Actor{UserID: 71, Collaborates: func(context.Context, string) (bool, error) { return false, errUnknown }}
	keyOfOwner = Actor{UserID: 50, Role: role.Owner, DeployKey: DeployKey{ID: 6, Title: "other", CanWrite: true}}
)

// The grants.
var (
	noOne       = []Grant{{}}
	developers  = []Grant{{Role: role.Developer}}
	maintainers = []Grant{{Role: role.Maintainer}}
	admins      = []Grant{{Role: role.Admin}}
	toAlice     = []Grant{{UserID: 1, Title: "Alice"}}
	toGroup     = []Grant{{GroupID: 7, Title: "ops"}}
	toKey       = []Grant{{DeployKeyID: 5, Title: "ci"}}
)

func memberOf(group int64) func(context.Context, int64) (bool, error) {
	return func(_ context.Context, id int64) (bool, error) { return id == group, nil }
}

var errUnknown = errors.New("unknown")

func collaboratesIn(branch string) func(context.Context, string) (bool, error) {
	return func(_ context.Context, name string) (bool, error) { return name == branch || name == "", nil }
}

func rule(name string, push []Grant) Rule {
	return Rule{Name: name, Source: "team/" + strings.Trim(name, "/*"), Push: push, Merge: maintainers, Unprotect: maintainers}
}

func forceable(r Rule) Rule            { r.AllowForcePush = true; return r }
func codeOwned(r Rule) Rule            { r.CodeOwnerApprovalRequired = true; return r }
func merge(r Rule, g []Grant) Rule     { r.Merge = g; return r }
func unprotect(r Rule, g []Grant) Rule { r.Unprotect = g; return r }

func updated(ref string) update.Ref { return update.Ref{Name: ref, Old: "1", New: "2"} }
func created(ref string) update.Ref { return update.Ref{Name: ref, New: "2"} }
func deleted(ref string) update.Ref { return update.Ref{Name: ref, Old: "1"} }

// change returns the change that words describe: "push", "force", "create", "delete", "merge", "commit" (through the API),
// "rewrite" (a forced commit through the API), "remove" (through the API), "clean up" (after a merge), and
// "create owned", "push owned" and "merge owned" (files with code owners); then the ref.
func change(t *testing.T, words string) Change {
	t.Helper()
	i := strings.LastIndex(words, " ")
	verb, ref := words[:i], words[i+1:]
	yes := func(context.Context) (bool, error) { return true, nil }
	no := func(context.Context) (bool, error) { return false, nil }
	owned := func(context.Context) ([]string, error) { return []string{"go.mod", "docs/\x1b[2Ja.md"}, nil }
	unowned := func(context.Context) ([]string, error) { return nil, nil }
	switch verb {
	case "push":
		return Change{Ref: updated(ref), Via: Push, Forced: no, OwnedPaths: unowned}
	case "push owned":
		return Change{Ref: updated(ref), Via: Push, Forced: no, OwnedPaths: owned}
	case "force":
		return Change{Ref: updated(ref), Via: Push, Forced: yes, OwnedPaths: unowned}
	case "create":
		return Change{Ref: created(ref), Via: Push, OwnedPaths: unowned}
	case "create owned":
		return Change{Ref: created(ref), Via: Push, OwnedPaths: owned}
	case "delete":
		return Change{Ref: deleted(ref), Via: Push}
	case "merge":
		return Change{Ref: updated(ref), Via: Merge, OwnedPaths: unowned}
	case "merge owned":
		return Change{Ref: updated(ref), Via: Merge, OwnedPaths: owned}
	case "commit":
		return Change{Ref: updated(ref), Via: API, Forced: no, OwnedPaths: unowned}
	case "rewrite":
		return Change{Ref: updated(ref), Via: API, Forced: yes, OwnedPaths: unowned}
	case "remove":
		return Change{Ref: deleted(ref), Via: API}
	case "clean up":
		return Change{Ref: deleted(ref), Via: Merge}
	default:
		t.Fatalf("no change is called %q", verb)
		return Change{}
	}
}

func TestMayWrite(t *testing.T) {
	for _, c := range []struct {
		actor  Actor
		branch string
		may    bool
		failed error
	}{
		{actor: developer, may: true},
		{actor: reporter},
		{actor: helper, may: true},
		{actor: helper, branch: "topic", may: true},
		{actor: helper, branch: "main"},
		{actor: readKey},
		{actor: lost, failed: errUnknown},
	} {
		if may, err := c.actor.MayWrite(t.Context(), c.branch); may != c.may || !errors.Is(err, c.failed) {
			t.Errorf("%+v in %q: got %v, %v", c.actor, c.branch, may, err)
		}
	}
	if v, err := Decide(t.Context(), nil, lost, change(t, "push refs/heads/topic")); v.Allowed || !errors.Is(err, errUnknown) {
		t.Errorf("got %+v, %v", v, err)
	}
}

func TestDecide(t *testing.T) {
	const main, other, tag = "refs/heads/main", "refs/heads/topic", "refs/tags/v1"
	const allowed = ""
	for _, c := range []struct {
		about  string
		rules  []Rule
		actor  Actor
		change string
		want   string // part of the reason
	}{
		// No rule.
		{"an unprotected branch is updated", nil, developer, "push " + main, allowed},
		{"an unprotected branch is rewritten", nil, developer, "force " + main, allowed},
		{"an unprotected branch is created", nil, developer, "create " + main, allowed},
		{"an unprotected branch is deleted", nil, developer, "delete " + main, allowed},
		{"an unprotected branch beside a protected one", []Rule{rule("main", noOne)}, developer, "force " + other, allowed},
		{"a reporter pushes", nil, reporter, "push " + main, "You need the Developer role to change this repository. You have the Reporter role."},
		{"a guest deletes", nil, guest, "delete " + main, "You have the Guest role"},
		{"somebody without a role", nil, nobody, "push " + main, "You have no role in this project"},
		{"an administrator without a role", nil, admin, "push " + main, allowed},
		{"a deploy key that may write", nil, writeKey, "force " + main, allowed},
		{"a deploy key that may only read", nil, readKey, "push " + main, `You need a key with write access to change this repository. You use the deploy key "ci".`},

		// Merge requests that allow collaboration.
		{"a collaborator pushes", nil, helper, "push " + other, allowed},
		{"a collaborator rewrites", nil, helper, "force " + other, allowed},
		{"a collaborator commits through the API", nil, helper, "commit " + other, allowed},
		{"a collaborator pushes to another branch", nil, helper, "push " + main, "You need the Developer role to change this repository. You have the Reporter role."},
		{"a collaborator creates the branch", nil, helper, "create " + other, "You need the Developer role"},
		{"a collaborator deletes the branch", nil, helper, "delete " + other, "You need the Developer role"},
		{"a collaborator removes the branch through the API", nil, helper, "remove " + other, "You need the Developer role"},
		{"a collaborator merges into the branch", nil, helper, "merge " + other, "You need the Developer role"},
		{"a collaborator moves a tag of that name", nil, helper, "push refs/tags/topic", "You need the Developer role"},
		{"a collaborator pushes to a protected branch", []Rule{rule("topic", developers)}, helper, "push " + other, "You need the Developer role"},
		{"a Developer does not need collaboration", nil, Actor{Role: role.Developer, Collaborates: lost.Collaborates}, "push " + other, allowed},

		// Other refs.
		{"a developer tags", nil, developer, "create " + tag, allowed},
		{"a developer moves a tag", nil, developer, "force " + tag, allowed},
		{"a reporter tags", nil, reporter, "create " + tag, "You need the Developer role"},
		{"a rule does not cover tags", []Rule{rule("*", noOne)}, developer, "create " + tag, allowed},
		{"notes", nil, developer, "create refs/notes/commits", allowed},
		{"a merge request's ref", nil, owner, "create refs/merge-requests/1/head", `"refs/merge-requests/1/head" is managed by the server`},
		{"another ref, by an administrator", nil, admin, "delete refs/forgeplane/x", "only branches, tags and notes"},
		{"a ref without a namespace", nil, admin, "push HEAD", "managed by the server"},
		{"only the namespace of branches", nil, admin, "push refs/heads", "managed by the server"},

		// Levels.
		{"Developers may push: developer", []Rule{rule("main", developers)}, developer, "push " + main, allowed},
		{"Developers may push: reporter", []Rule{rule("main", developers)}, reporter, "push " + main, "You need the Developer role"},
		{"only Maintainers may push: developer", []Rule{rule("main", maintainers)}, developer, "push " + main, `Branch "main" is protected by "main" (team/main): only Maintainers may push to it. You have the Developer role.`},
		{"only Maintainers may push: maintainer", []Rule{rule("main", maintainers)}, maintainer, "push " + main, allowed},
		{"only Maintainers may push: owner", []Rule{rule("main", maintainers)}, owner, "push " + main, allowed},
		{"only Maintainers may push: administrator", []Rule{rule("main", maintainers)}, admin, "push " + main, allowed},
		{"only administrators may push: owner", []Rule{rule("main", admins)}, owner, "push " + main, "only administrators may push to it. You have the Owner role."},
		{"only administrators may push: administrator", []Rule{rule("main", admins)}, admin, "push " + main, allowed},
		{"no one may push: owner", []Rule{rule("main", noOne)}, owner, "push " + main, "no one may push to it"},
		{"no one may push: administrator", []Rule{rule("main", noOne)}, admin, "push " + main, "no one may push to it. You are an administrator."},
		{"an empty list is no one", []Rule{rule("main", nil)}, admin, "push " + main, "no one may push to it"},
		{"no one beside developers", []Rule{rule("main", append(noOne, developers...))}, developer, "push " + main, allowed},

		// Users, groups, deploy keys.
		{"the named user", []Rule{rule("main", toAlice)}, alice, "push " + main, allowed},
		{"the named user without access", []Rule{rule("main", toAlice)}, alicia, "push " + main, "You have the Reporter role"},
		{"another user", []Rule{rule("main", toAlice)}, owner, "push " + main, "only Alice may push to it"},
		{"another user, an administrator", []Rule{rule("main", toAlice)}, admin, "push " + main, "only Alice"},
		{"a member of the group", []Rule{rule("main", toGroup)}, grouped, "push " + main, allowed},
		{"not a member of the group", []Rule{rule("main", toGroup)}, maintainer, "push " + main, "only the group ops may push to it"},
		{"the deploy key", []Rule{rule("main", toKey)}, writeKey, "push " + main, allowed},
		{"the deploy key, read only", []Rule{rule("main", toKey)}, readKey, "push " + main, "a key with write access"},
		{"another deploy key is not its owner", []Rule{rule("main", append(maintainers, toKey...))}, keyOfOwner, "push " + main,
			`only Maintainers and the deploy key "ci" may push to it. You use the deploy key "other".`},
		{"a person is not a deploy key", []Rule{rule("main", toKey)}, owner, "push " + main, `only the deploy key "ci"`},
		{"control characters in a title are removed", []Rule{rule("main", []Grant{{UserID: 3, Title: "Mallory\x1b[2J\u202e"}})}, owner, "push " + main, "only Mallory[2J may"},

		// Kinds of change.
		{"creation needs the right to push", []Rule{rule("release/*", maintainers)}, developer, "create refs/heads/release/1", `protected by "release/*" (team/release): only Maintainers`},
		{"creation by a maintainer", []Rule{rule("release/*", maintainers)}, maintainer, "create refs/heads/release/1", allowed},
		{"a forced push", []Rule{rule("main", developers)}, owner, "force " + main, "nobody may rewrite its history"},
		{"a forced push that is allowed", []Rule{forceable(rule("main", developers))}, developer, "force " + main, allowed},
		{"a forced push without the right to push", []Rule{forceable(rule("main", maintainers))}, developer, "force " + main, "only Maintainers may push"},
		{"a forced commit through the API", []Rule{rule("main", developers)}, developer, "rewrite " + main, "rewrite its history"},
		{"a commit through the API", []Rule{rule("main", developers)}, developer, "commit " + main, allowed},
		{"a commit through the API with only the right to merge", []Rule{merge(rule("main", noOne), developers)}, developer, "commit " + main, "no one may push"},

		// Deletion.
		{"deletion by push, owner", []Rule{rule("main", developers)}, owner, "delete " + main, "so Git cannot delete it"},
		{"deletion by push, administrator", []Rule{forceable(rule("main", developers))}, admin, "delete " + main, "so Git cannot delete it"},
		{"removal by a maintainer", []Rule{rule("main", noOne)}, maintainer, "remove " + main, allowed},
		{"removal by a developer", []Rule{rule("main", developers)}, developer, "remove " + main, "only Maintainers may delete it"},
		{"removal with a grant", []Rule{unprotect(rule("main", noOne), toAlice)}, alice, "remove " + main, allowed},
		{"removal by a user who is not in the list", []Rule{unprotect(rule("main", developers), admins)}, owner, "remove " + main, "only administrators may delete it"},
		{"removal with an empty list", []Rule{unprotect(rule("main", developers), nil)}, maintainer, "remove " + main, allowed},
		{"removal needs the consent of every rule", []Rule{rule("main", developers), unprotect(rule("m*", developers), admins)}, maintainer, "remove " + main,
			`Branch "main" is protected by "m*" (team/m): only administrators may delete it.`},
		{"clean-up after a merge", []Rule{rule("main", developers)}, developer, "clean up " + main, "only Maintainers may delete it"},

		// Merging.
		{"merge with the right to merge", []Rule{merge(rule("main", noOne), developers)}, developer, "merge " + main, allowed},
		{"merge with the right to push", []Rule{merge(rule("main", developers), noOne)}, developer, "merge " + main, allowed},
		{"merge without either right", []Rule{merge(rule("main", noOne), maintainers)}, developer, "merge " + main, "only Maintainers may merge into it"},
		{"push with only the right to merge", []Rule{merge(rule("main", noOne), developers)}, developer, "push " + main, "no one may push to it"},

		// Code owners.
		{"a push of owned files", []Rule{codeOwned(rule("main", developers))}, owner, "push owned " + main,
			`these files have code owners: "go.mod" and "docs/\x1b[2Ja.md". Change them in a merge request that the owners approve.`},
		{"a push of other files", []Rule{codeOwned(rule("main", developers))}, developer, "push " + main, allowed},
		{"a new branch with owned files", []Rule{codeOwned(rule("main", developers))}, developer, "create owned " + main, "have code owners"},
		{"owned files without required approval", []Rule{rule("main", developers)}, developer, "push owned " + main, allowed},
		{"a merge of owned files", []Rule{codeOwned(rule("main", developers))}, developer, "merge owned " + main,
			`these files lack the approval of code owners: "go.mod" and "docs/\x1b[2Ja.md". Ask the owners to approve the merge request.`},

		// Several rules.
		{"the most permissive push wins", []Rule{rule("main", noOne), rule("*", developers)}, developer, "push " + main, allowed},
		{"the most permissive rewrite wins", []Rule{rule("main", developers), forceable(rule("*", noOne))}, developer, "force " + main, allowed},
		{"the strictest code ownership wins", []Rule{rule("main", developers), codeOwned(rule("*", noOne))}, developer, "push owned " + main, "have code owners"},
		{"a rule for another branch does not count", []Rule{rule("main", noOne), forceable(rule("topic", developers))}, developer, "push " + main, "no one may push"},
		{"all grants are named once", []Rule{rule("main", maintainers), rule("m*", append(maintainers, toAlice...))}, developer, "push " + main,
			`protected by "main" (team/main) and "m*" (team/m): only Maintainers and Alice may push to it.`},
	} {
		t.Run(c.about, func(t *testing.T) {
			v, err := Decide(t.Context(), c.rules, c.actor, change(t, c.change))
			switch {
			case err != nil:
				t.Error(err)
			case v.Allowed != (c.want == allowed):
				t.Errorf("allowed: %t, reason: %q", v.Allowed, v.Reason)
			case !strings.Contains(v.Reason, c.want):
				t.Errorf("got reason  %q\nwant a part %q", v.Reason, c.want)
			case v.Allowed && v.Reason != "":
				t.Errorf("allowed with the reason %q", v.Reason)
			}
		})
	}
}

func TestDecide_asksOnlyWhatItNeeds(t *testing.T) {
	asked := func(what string) Change {
		return Change{
			Ref:        updated("refs/heads/main"),
			Forced:     func(context.Context) (bool, error) { t.Errorf("%s: asked for Forced", what); return true, nil },
			OwnedPaths: func(context.Context) ([]string, error) { t.Errorf("%s: asked for OwnedPaths", what); return nil, nil },
		}
	}
	for about, c := range map[string]struct {
		rules []Rule
		actor Actor
	}{
		"unprotected":      {nil, developer},
		"may not push":     {[]Rule{codeOwned(rule("main", noOne))}, owner},
		"may not write":    {[]Rule{rule("main", developers)}, reporter},
		"force is allowed": {[]Rule{forceable(rule("main", developers))}, developer},
	} {
		if _, err := Decide(t.Context(), c.rules, c.actor, asked(about)); err != nil {
			t.Errorf("%s: %v", about, err)
		}
	}
}

func TestDecide_failsClosed(t *testing.T) {
	broken := errors.New("broken")
	no := func(context.Context) (bool, error) { return false, nil }
	forward := Change{Ref: updated("refs/heads/main"), Forced: no}
	for about, c := range map[string]struct {
		rule   Rule
		actor  Actor
		change Change
		want   error
	}{
		"group lookup": {rule("main", toGroup), Actor{UserID: 1, Role: role.Developer, InGroup: func(context.Context, int64) (bool, error) { return true, broken }}, forward, broken},
		"ancestor check": {rule("main", developers), developer,
			Change{Ref: updated("refs/heads/main"), Forced: func(context.Context) (bool, error) { return false, broken }}, broken},
		"code owners": {codeOwned(rule("main", developers)), developer,
			Change{Ref: updated("refs/heads/main"), Forced: no, OwnedPaths: func(context.Context) ([]string, error) { return nil, broken }}, broken},
		"Forced is missing":     {rule("main", developers), developer, Change{Ref: updated("refs/heads/main")}, nil},
		"OwnedPaths is missing": {codeOwned(rule("main", developers)), developer, forward, nil},
	} {
		v, err := Decide(t.Context(), []Rule{c.rule}, c.actor, c.change)
		if err == nil || v.Allowed || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: allowed %t, error %v", about, v.Allowed, err)
		}
	}
}

func TestMayUnprotect(t *testing.T) {
	const user, group, none = 7, 8, role.None
	tests := []struct {
		name   string
		grants []Grant
		actor  Actor
		want   bool
	}{
		{"without a list, a maintainer", nil, Actor{UserID: 1, Role: role.Maintainer}, true},
		{"without a list, a developer", nil, Actor{UserID: 1, Role: role.Developer}, false},
		{"a user, that user", []Grant{{UserID: user}}, Actor{UserID: user, Role: role.Maintainer}, true},
		{"a user, another user", []Grant{{UserID: user}}, Actor{UserID: 1, Role: role.Owner}, false},
		{"a group, a member", []Grant{{UserID: user}, {GroupID: group}}, Actor{UserID: 1, Role: role.Maintainer, InGroup: memberOf(group)}, true},
		{"administrators, an owner", []Grant{{Role: role.Admin}}, Actor{UserID: 1, Role: role.Owner}, false},
		{"administrators, an administrator", []Grant{{Role: role.Admin}}, Actor{UserID: 1, Admin: true}, true},
		{"a user, an administrator", []Grant{{UserID: user}}, Actor{UserID: 1, Admin: true}, true},
		{"no one, an administrator without a user", []Grant{{Role: none}}, Actor{Admin: true}, true},
		{"no one, an owner", []Grant{{Role: none}}, Actor{UserID: 1, Role: role.Owner}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.actor.MayUnprotect(t.Context(), Rule{Name: "main", Unprotect: tt.grants})
			if err != nil || got != tt.want {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func TestUnprotecting_saysWhoMay(t *testing.T) {
	for want, unprotect := range map[string][]Grant{
		`Only Maintainers may change or remove the protection of "main". You have the Developer role.`:    nil,
		`Only administrators may change or remove the protection of "main". You have the Developer role.`: {{Role: role.Admin}},
		`No one may change or remove the protection of "main". You have the Developer role.`:              {{Role: role.None}},
	} {
		if got := (Actor{UserID: 1, Role: role.Developer}).Unprotecting(Rule{Name: "main", Unprotect: unprotect}); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
