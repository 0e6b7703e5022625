package protection

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/forgeplane/forgeplane/internal/role"
)

func refuse(format string, args ...any) (Verdict, error) {
	return Verdict{Reason: fmt.Sprintf(format, args...)}, nil
}

// String returns the beginning of a reason, without a full stop: the branch and what protects it.
func (p protected) String() string {
	names := make([]string, len(p.rules))
	for i, r := range p.rules {
		names[i] = fmt.Sprintf("%q", r.Name)
		if r.Source != "" {
			names[i] += fmt.Sprintf(" (%s)", r.Source)
		}
	}
	return fmt.Sprintf("Branch %q is protected by %s", p.branch, list(names, 3))
}

func (a Actor) describe() string {
	switch {
	case a.DeployKey.ID != 0:
		return fmt.Sprintf("you use the deploy key %q", a.DeployKey.Title)
	case a.Admin:
		return "you are an administrator"
	case a.Role == role.None:
		return "you have no role in this project"
	default:
		return fmt.Sprintf("you have the %s role", a.Role)
	}
}

// Unprotecting says to an actor who may not change or remove a rule who may.
func (a Actor) Unprotecting(r Rule) string {
	return fmt.Sprintf("%s may change or remove the protection of %q. %s.", sentence(who(r.unprotect())), r.Name, sentence(a.describe()))
}

func (a Actor) needed() string {
	if a.DeployKey.ID != 0 {
		return "a key with write access"
	}
	return fmt.Sprintf("the %s role", role.Developer)
}

// The function who returns the people and keys that the grants cover, in words.
func who(grants []Grant) string {
	var names []string
	for _, g := range grants {
		if name := g.who(); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "no one"
	}
	return "only " + list(names, 6)
}

func (g Grant) who() string {
	switch {
	case g.DeployKeyID != 0:
		return fmt.Sprintf("the deploy key %q", g.Title)
	case g.UserID != 0 && g.Title == "":
		return fmt.Sprintf("the user %d", g.UserID)
	case g.UserID != 0:
		return printable(g.Title)
	case g.GroupID != 0 && g.Title == "":
		return fmt.Sprintf("the group %d", g.GroupID)
	case g.GroupID != 0:
		return "the group " + printable(g.Title)
	case g.Role == role.None:
		return ""
	case g.Role == role.Admin:
		return "administrators"
	case g.Role == role.Developer:
		return "Developers and Maintainers"
	default:
		return g.Role.String() + "s"
	}
}

// list joins at most limit items in words.
func list(items []string, limit int) string {
	switch more := len(items) - limit; {
	case more > 0:
		return fmt.Sprintf("%s and %d more", strings.Join(items[:limit], ", "), more)
	case len(items) < 2:
		return strings.Join(items, "")
	default:
		last := len(items) - 1
		return strings.Join(items[:last], ", ") + " and " + items[last]
	}
}

func quoted(items []string) []string {
	out := make([]string, len(items))
	for i, s := range items {
		out[i] = fmt.Sprintf("%q", s)
	}
	return out
}

// printable drops characters that could control a terminal, because users choose the titles.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return -1
		}
		return r
	}, s)
}

func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
