package conformance

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"

	"github.com/forgeplane/forgeplane/test/suite"
)

// Part is a part of the specs. Each part is a package with an installation of its own, so that it takes less than half the time limit of a
// package.
type Part string

// These are the parts.
const (
	// Content is the content of repositories and of the activity database.
	Content Part = "content"
	// Resources are custom resources, and everything else.
	Resources Part = "resources"
)

// content maps the families of endpoints of Content to the files of their specs.
var content = map[string][]string{
	"Branches":              {"branches", "names"},
	"CI configuration":      {"cilint"},
	"Commits":               {"commits", "changelogs"},
	"Draft notes":           {"draftnotes"},
	"Emoji reactions":       {"reactions"},
	"Epics":                 {"epics"},
	"Files":                 {"commits"},
	"Issues":                {"issues"},
	"Merge requests":        {"approvals", "mergerequestdiffs", "mergerequestlists", "mergerequestmerges", "mergerequests_write", "reviews"},
	"Milestones":            {"milestones"},
	"Notes and discussions": {"notes"},
	"Pipeline schedules":    {"schedules"},
	"Pipelines and jobs":    {"artifacts", "pipelines"},
	"Jobs of runners":       {"artifacts", "runners"},
	"Repository":            {"repositories", "limits"},
	"Runners":               {"runners"},
	"Resource state events": {"stateevents"},
	"Tags":                  {"branches"},
}

// running is the part whose specs run.
var running Part

// Run runs the specs of a part.
func Run(t *testing.T, p Part) {
	t.Helper()
	running = p
	suite.Run(t, "Conformance of the REST API: "+string(p), func(c *types.SuiteConfig) {
		filter := &c.SkipFiles
		if p == Content {
			filter = &c.FocusFiles
		}
		for _, files := range content {
			for _, name := range files {
				*filter = append(*filter, "/conformance/"+name+`\.go`)
			}
		}
	})
}

// covers reports whether the specs of the part call the endpoints of a family, given by its tags.
func (p Part) covers(tags []string) bool {
	inContent := slices.ContainsFunc(tags, func(family string) bool { return content[family] != nil })
	return inContent == (p == Content)
}

// whole reports whether all specs of the part have run that are not left to "make soak".
func whole(r Report) bool {
	r.SpecReports = slices.DeleteFunc(slices.Clone(r.SpecReports), func(s SpecReport) bool { return partOf(s.FileName()) != running })
	return suite.Whole(r)
}

// partOf returns the part of a spec.
func partOf(file string) Part {
	for _, files := range content {
		if slices.ContainsFunc(files, func(name string) bool { return strings.HasSuffix(file, "/conformance/"+name+".go") }) {
			return Content
		}
	}
	return Resources
}
