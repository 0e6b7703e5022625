package protection

import (
	"context"
	"fmt"
	"strings"

	"github.com/forgeplane/forgeplane/internal/git/update"
)

// Branch returns the name of the branch of a ref, and whether the ref is a branch.
func Branch(ref string) (name string, ok bool) { return strings.CutPrefix(ref, "refs/heads/") }

// Decide says whether an actor may make a change, given the rules of the project. Only the matching rules count.
//
//   - A change needs write access: the Developer role, or a deploy key that may write. Tags, notes and branches that no
//     rule matches need nothing more. Refs elsewhere belong to the server and are refused.
//   - Merge requests can let others push to their source branches, but not create, delete or merge into branches.
//   - If several rules match a branch, a push, merge or rewrite is allowed if any of them allows it. The approval of
//     code owners is required if any of them requires it.
//   - Creating a protected branch needs the right to push. Merging needs the right to merge or to push.
//   - A push can never delete a protected branch. Any other deletion needs the right to unprotect in every matching
//     rule, because a deletion defeats each of them.
//
// An error means that there is no decision: the change must not be made.
func Decide(ctx context.Context, rules []Rule, actor Actor, change Change) (Verdict, error) {
	branch, isBranch := Branch(change.Name)
	if !isBranch && !strings.HasPrefix(change.Name, "refs/tags/") && !strings.HasPrefix(change.Name, "refs/notes/") {
		return refuse("%q is managed by the server: only branches, tags and notes can be changed.", change.Name)
	}
	p := matching(rules, branch)
	if !actor.CanWrite() {
		if isBranch && len(p.rules) == 0 && change.Via != Merge && !change.Creates() && !change.Deletes() {
			if may, err := actor.MayWrite(ctx, branch); may || err != nil {
				return Verdict{Allowed: may}, err
			}
		}
		return refuse("You need %s to change this repository. %s.", actor.needed(), sentence(actor.describe()))
	}
	if !isBranch || len(p.rules) == 0 {
		return Verdict{Allowed: true}, nil
	}
	if change.Deletes() {
		return p.decideDelete(ctx, actor, change)
	}
	return p.decideWrite(ctx, actor, change)
}

// MayPush decides whether an actor may push to a ref something that rewrites no history and has no owners.
func MayPush(ctx context.Context, rules []Rule, actor Actor, ref string) (Verdict, error) {
	return Decide(ctx, rules, actor, Change{
		Ref: update.Ref{Name: ref, Old: "1", New: "2"}, Via: Push, // the rules do not depend on the ids
		Forced:     func(context.Context) (bool, error) { return false, nil },
		OwnedPaths: func(context.Context) ([]string, error) { return nil, nil },
	})
}

// MayMerge decides whether an actor may merge into a branch something that has no owners.
func MayMerge(ctx context.Context, rules []Rule, actor Actor, ref string) (Verdict, error) {
	return Decide(ctx, rules, actor, Change{
		Ref: update.Ref{Name: ref, Old: "1", New: "2"}, Via: Merge,
		OwnedPaths: func(context.Context) ([]string, error) { return nil, nil },
	})
}

// protected is a branch with the rules that match it.
type protected struct {
	branch string
	rules  []*Rule
}

func matching(rules []Rule, branch string) protected {
	p := protected{branch: branch}
	for i := range rules {
		if Match(rules[i].Name, branch) {
			p.rules = append(p.rules, &rules[i])
		}
	}
	return p
}

func (p protected) decideWrite(ctx context.Context, actor Actor, change Change) (Verdict, error) {
	verb, grants := "push to", p.grants(func(r *Rule) []Grant { return r.Push })
	if change.Via == Merge {
		verb = "merge into"
		grants = append(grants, p.grants(func(r *Rule) []Grant { return r.Merge })...)
	}
	if ok, err := actor.holdsAny(ctx, grants); err != nil {
		return Verdict{}, fmt.Errorf("deciding who may %s %s: %w", verb, p.branch, err)
	} else if !ok {
		return refuse("%s: %s may %s it. %s.", p, who(grants), verb, sentence(actor.describe()))
	}
	if change.Via != Merge { // a merge drops no commits
		if v, err := p.decideForced(ctx, change); err != nil || !v.Allowed {
			return v, err
		}
	}
	return p.decideOwned(ctx, change)
}

func (p protected) decideForced(ctx context.Context, change Change) (Verdict, error) {
	if change.Creates() || p.any(func(r *Rule) bool { return r.AllowForcePush }) {
		return Verdict{Allowed: true}, nil
	}
	if change.Forced == nil {
		return Verdict{}, fmt.Errorf("change of %s does not say whether it is forced", change.Name)
	}
	if forced, err := change.Forced(ctx); err != nil {
		return Verdict{}, fmt.Errorf("finding out whether %s is forced: %w", change.Name, err)
	} else if forced {
		return refuse("%s, and nobody may rewrite its history. Fetch it, rebase or merge, and push without force.", p)
	}
	return Verdict{Allowed: true}, nil
}

func (p protected) decideOwned(ctx context.Context, change Change) (Verdict, error) {
	if !p.any(func(r *Rule) bool { return r.CodeOwnerApprovalRequired }) {
		return Verdict{Allowed: true}, nil
	}
	if change.OwnedPaths == nil {
		return Verdict{}, fmt.Errorf("change of %s does not say which owned paths it touches", change.Name)
	}
	if paths, err := change.OwnedPaths(ctx); err != nil {
		return Verdict{}, fmt.Errorf("finding the code owners of what changes in %s: %w", change.Name, err)
	} else if len(paths) > 0 && change.Via == Merge {
		return refuse("%s, and these files lack the approval of code owners: %s. Ask the owners to approve the merge request.", p, list(quoted(paths), 5))
	} else if len(paths) > 0 {
		return refuse("%s, and these files have code owners: %s. Change them in a merge request that the owners approve.", p, list(quoted(paths), 5))
	}
	return Verdict{Allowed: true}, nil
}

func (p protected) decideDelete(ctx context.Context, actor Actor, change Change) (Verdict, error) {
	if change.Via == Push {
		return refuse("%s, so Git cannot delete it. Users who can unprotect it can delete it through the API.", p)
	}
	for _, r := range p.rules {
		if ok, err := actor.MayUnprotect(ctx, *r); err != nil {
			return Verdict{}, fmt.Errorf("deciding who may delete %s: %w", p.branch, err)
		} else if !ok {
			one := protected{branch: p.branch, rules: []*Rule{r}}
			return refuse("%s: %s may delete it. %s.", one, who(r.unprotect()), sentence(actor.describe()))
		}
	}
	return Verdict{Allowed: true}, nil
}

// MayUnprotect reports whether an actor who may change the settings of the project may also change or remove a rule. Any one grant
// suffices. An administrator needs none, so that no rule becomes permanent.
func (a Actor) MayUnprotect(ctx context.Context, r Rule) (bool, error) {
	if a.Admin {
		return true, nil
	}
	return a.holdsAny(ctx, r.unprotect())
}

func (r *Rule) unprotect() []Grant {
	if len(r.Unprotect) == 0 {
		return maintainers()
	}
	return r.Unprotect
}

func (p protected) grants(of func(*Rule) []Grant) []Grant {
	var all []Grant
	for _, r := range p.rules {
		all = append(all, of(r)...)
	}
	return all
}

func (p protected) any(is func(*Rule) bool) bool {
	for _, r := range p.rules {
		if is(r) {
			return true
		}
	}
	return false
}
