package include

import (
	"strings"

	"github.com/forgeplane/forgeplane/internal/ci/config"
	"github.com/forgeplane/forgeplane/internal/ci/document"
	"github.com/forgeplane/forgeplane/internal/ci/expression"
)

// entry is an entry of include.
type entry struct {
	// project is empty for the own one.
	project, ref string
	paths        []string
	rules        []config.Rule
	ruled        bool
}

// elsewhere are the kinds of includes that are refused.
var elsewhere = map[string]string{
	"remote": "files of other servers cannot be included", "template": "there are no templates: copy the file into a project",
	"component": "components are not supported", "inputs": "inputs are not supported", "integrity": "files of other servers cannot be included",
	"artifact": "only trigger:include can name an artifact", "cache": "files of other servers cannot be included",
}

// entry reads an entry of include, with its variables expanded.
func (l *Loader) entry(n *document.Node) (e entry, ok bool) {
	if n.Kind != document.Map {
		if !n.Scalar() {
			l.problems.At(n, "include", "must be a path, a map or a list of them")
			return e, false
		}
		return l.local(n, n.Text)
	}
	before := len(l.problems)
	for _, f := range n.Entries {
		key, text := document.Join("include", f.Key), expression.Expand(f.Value.Text, l.Variables)
		why, refused := elsewhere[f.Key]
		switch {
		case refused:
			l.problems.Add(f.File, f.Line, key, "%s", why)
		case f.Key == "rules":
			rules, problems := config.IncludeRule(f.Value, key, &l.expressions)
			l.problems.Append(problems)
			e.rules, e.ruled = rules, true
		case f.Key == "file" && f.Value.Kind == document.List:
			e.paths = l.files(f.Value)
		case !f.Value.Scalar():
			l.problems.Add(f.File, f.Line, key, "must be a text")
		case f.Key == "local", f.Key == "file":
			e.paths = append(e.paths, text)
		case f.Key == "project":
			e.project = text
		case f.Key == "ref":
			e.ref = text
		default:
			l.problems.Add(f.File, f.Line, key, "unknown keyword; those here are file, local, project, ref, rules")
		}
	}
	l.checkEntry(n, e)
	return e, len(l.problems) == before
}

// files returns the paths in a list.
func (l *Loader) files(n *document.Node) (paths []string) {
	for _, item := range n.Flatten() {
		if len(paths) > MaxFiles { // the others would be too many
			break
		}
		if !item.Scalar() {
			l.problems.At(item, "include:file", "must be a text")
		}
		paths = append(paths, expression.Expand(item.Text, l.Variables))
	}
	return paths
}

func (l *Loader) checkEntry(n *document.Node, e entry) {
	local, file := n.Get("local") != nil, n.Get("file") != nil
	switch {
	case len(e.paths) == 0 && len(l.problems) == 0:
		l.problems.At(n, "include", "must have local, or project and file")
	case len(e.paths) > 0 && local == (e.project != "") || local && file:
		l.problems.At(n, "include", "local excludes project, file needs it")
	case e.ref != "" && e.project == "":
		l.problems.At(n, "include:ref", "needs project")
	}
}

// local returns the entry of a path, which must not be an address.
func (l *Loader) local(n *document.Node, text string) (entry, bool) {
	if strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://") {
		l.problems.At(n, "include", "%s", elsewhere["remote"])
		return entry{}, false
	}
	return entry{paths: []string{expression.Expand(text, l.Variables)}}, true
}
