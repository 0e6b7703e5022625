// Package config reads the keywords of a CI configuration, with defaults and inheritance applied.
package config

import (
	"slices"
	"time"

	"github.com/forgeplane/forgeplane/internal/ci/document"
	"github.com/forgeplane/forgeplane/internal/ci/expression"
)

// Config is a configuration: the keywords of the whole pipeline, and all jobs that are not hidden.
type Config struct {
	// Stages are all stages in order, from .pre to .post.
	Stages []string
	// Name is the name of the pipeline, which can contain variables.
	Name      string
	Variables []Variable
	// Workflow decides whether there is a pipeline; nil for always. AutoCancel says what a newer pipeline or a failed job cancels.
	Workflow      []Rule
	WorkflowPlace Place
	AutoCancel    AutoCancel
	Jobs          []*Job
}

// Place is a line of a file. Lines count from 1.
type Place struct {
	File string
	Line int
}

// AutoCancel is workflow:auto_cancel.
type AutoCancel struct{ OnNewCommit, OnJobFailure string }

// Variable is a variable of the pipeline or of a job.
type Variable struct {
	Key, Value string
	// Description and Options are for people who start a pipeline.
	Description string
	Options     []string
	// Raw says that variables in the value are not expanded.
	Raw bool
}

// Job is a job, or a bridge if it has a Trigger.
type Job struct {
	Name, Stage string
	// File and Line are the place of the job.
	File string
	Line int

	BeforeScript, Script, AfterScript []string
	// PreGetSources is the script of the hook.
	PreGetSources []string
	Image         *Image
	Services      []Image
	Tags          []string
	Variables     []Variable
	// InheritVariables selects the variables of the pipeline that the job has.
	InheritVariables Selection

	// Rules is nil if the job has no rules; it can be empty.
	Rules []Rule
	// Only is nil if the job is in all pipelines, as far as Except lets it.
	Only, Except *Filter

	// Needs is nil if the job waits for the stages before its own; it can be empty. Dependencies is nil for all jobs of earlier stages.
	Needs        []Need
	Dependencies []string

	Artifacts     *Artifacts
	Cache         []Cache
	Environment   *Environment
	Release       *Release
	IDTokens      []IDToken
	Retry         Retry
	Timeout       time.Duration
	When          string
	StartIn       time.Duration
	AllowFailure  AllowFailure
	Confirmation  string
	Interruptible bool
	ResourceGroup string
	Coverage      string

	// Parallel is the number of instances, and Matrix the variables of each instance; zero and nil for a single job.
	Parallel int
	Matrix   [][]Variable

	Trigger *Trigger
}

// Selection is a value of inherit: all, none, or those with the names.
type Selection struct {
	None  bool
	Names []string
}

// Includes reports whether a name is selected.
func (s Selection) Includes(name string) bool {
	if s.Names == nil {
		return !s.None
	}
	return slices.Contains(s.Names, name)
}

// Image is a container image.
type Image struct {
	Name, Alias         string
	PullPolicies        []string
	Entrypoint, Command []string
	Variables           []Variable
	Platform, User      string
}

// Rule is a rule of a job, of the workflow or of an include.
type Rule struct {
	If      *expression.Expression
	Changes *Changes
	Exists  *Exists
	// When is empty for that of the job.
	When         string
	StartIn      time.Duration
	AllowFailure *bool
	Variables    []Variable
	Needs        []Need
	HasNeeds     bool
	// Interruptible replaces that of the job, and AutoCancel that of the workflow.
	Interruptible *bool
	AutoCancel    AutoCancel
}

// Changes matches changed paths.
type Changes struct {
	Paths     []string
	CompareTo string
}

// Exists matches paths of the repository.
type Exists struct{ Paths []string }

// Filter is the value of only or except.
type Filter struct {
	Refs      []Ref
	Variables []*expression.Expression
	Changes   *Changes
	// RefTexts are the refs and VariableTexts the expressions as they are written.
	RefTexts, VariableTexts []string
	// File and Line are the place.
	File string
	Line int
}

// Need is a job that another one waits for.
type Need struct {
	Job                 string
	Artifacts, Optional bool
	// Matrix selects instances of a parallel job; nil for all.
	Matrix [][]Variable
	// File and Line are the place.
	File string
	Line int
}

// Artifacts are the files that a job keeps.
type Artifacts struct {
	Name, When, Access, ExposeAs string
	Paths, Exclude               []string
	Untracked                    bool
	// ExpireIn is zero for the default, and negative for never.
	ExpireIn time.Duration
	// Reports are the paths by the type of report.
	Reports []Report
}

// Report is a type of report with its paths.
type Report struct {
	Type           string
	Paths          []string
	CoverageFormat string
}

// Cache is a cache of a job.
type Cache struct {
	Key                  string
	KeyFiles             []string
	KeyPrefix            string
	Paths, FallbackKeys  []string
	Untracked, Unprotect bool
	Policy, When         string
}

// Environment is the environment that a job deploys to.
type Environment struct {
	Name, URL, Action, OnStop, Tier string
	AutoStopIn                      time.Duration
	// AutoStopText is the duration as it is written, if it has variables.
	AutoStopText string
}

// Release is a release that a job makes.
type Release struct {
	TagName, TagMessage, Name, Description, Ref, ReleasedAt string
	Milestones                                              []string
	Links                                                   []Link
}

// Link is a link of a release.
type Link struct{ Name, URL, FilePath, Type string }

// IDToken is a token for other services.
type IDToken struct {
	Name     string
	Audience []string
}

// Retry says how often a failed job runs again.
type Retry struct {
	Max       int
	When      []string
	ExitCodes []int
}

// AllowFailure says whether a failed job fails the pipeline. Set is false if the configuration does not say so; then only a manual job can fail.
type AllowFailure struct {
	Set, Always bool
	ExitCodes   []int
}

// Trigger starts a pipeline of another project, or a child pipeline.
type Trigger struct {
	Project, Branch string
	// Depend says that the status of the job follows the pipeline.
	Depend bool
	// Include are the files of a child pipeline.
	Include                            []Child
	ForwardVariables, ForwardPipelines bool
}

// Child is a file of a child pipeline: of the repository, of a project, or an artifact of a job.
type Child struct{ Local, Project, Ref, File, Artifact, Job string }

// Read reads an expanded document. It returns all problems.
func Read(root *document.Node) (*Config, document.Problems) {
	r := &reader{expressions: &expression.Parser{}}
	c := r.config(root)
	if len(r.problems) == 0 {
		r.check(c)
	}
	return c, r.problems
}
