package config

import (
	"slices"
	"strings"
	"time"

	"github.com/forgeplane/forgeplane/internal/ci/document"
	"github.com/forgeplane/forgeplane/internal/ci/expression"
)

// coverage reads a pattern between slashes.
func (r *reader) coverage(n *document.Node, key string) string {
	text := r.text(n, key)
	if _, err := expression.Pattern(text); err != nil {
		r.problems.At(n, key, "invalid pattern: %v", err)
	}
	return text
}

// image reads an image, or a service if it can have an alias.
func (r *reader) image(n *document.Node, key string, service bool) (i Image) {
	if n.Kind != document.Map {
		i.Name = r.text(n, key)
		return i
	}
	table := fields{
		"name": r.textTo(&i.Name), "entrypoint": r.textsTo(&i.Entrypoint), "kubernetes": ignored,
		"pull_policy": func(n *document.Node, key string) {
			for _, p := range n.Flatten() {
				var policy string
				r.oneOf(&policy, "always", "if-not-present", "never")(p, key)
				i.PullPolicies = append(i.PullPolicies, policy)
			}
		},
		"docker": func(n *document.Node, key string) {
			r.fields(n, key, fields{"platform": r.textTo(&i.Platform), "user": r.textTo(&i.User)})
		},
	}
	if service {
		table["alias"], table["command"] = r.textTo(&i.Alias), r.textsTo(&i.Command)
		table["variables"] = func(n *document.Node, key string) { i.Variables = r.variables(n, key, false) }
	}
	r.fields(n, key, table)
	if i.Name == "" {
		r.problems.At(n, key, "name is missing")
	}
	return i
}

func (r *reader) services(n *document.Node, key string) []Image {
	items := n.Flatten()
	if n.Kind != document.List || len(items) > maxServices {
		r.problems.At(n, key, "must be a list of at most %d images", maxServices)
		return nil
	}
	all := []Image{}
	for _, item := range items {
		all = append(all, r.image(item, key, true))
	}
	return all
}

// reports are the types of reports.
var reports = []string{
	"accessibility", "annotations", "api_fuzzing", "browser_performance", "cluster_image_scanning", "codequality", "container_scanning",
	"coverage_fuzzing", "cyclonedx", "dast", "dependency_scanning", "dotenv", "junit", "load_performance", "metrics", "repository_xray",
	"requirements", "sast", "secret_detection", "terraform",
}

func (r *reader) artifacts(n *document.Node, key string) *Artifacts {
	a := &Artifacts{When: "on_success", Access: "all"}
	var public *bool
	r.fields(n, key, fields{
		"name": r.textTo(&a.Name), "paths": r.textsTo(&a.Paths), "exclude": r.textsTo(&a.Exclude), "untracked": r.boolTo(&a.Untracked),
		"when": r.oneOf(&a.When, "on_success", "on_failure", "always"), "access": r.oneOf(&a.Access, "all", "developer", "maintainer", "none"),
		"public":    func(n *document.Node, key string) { is := r.bool(n, key); public = &is },
		"expose_as": r.textTo(&a.ExposeAs), "expire_in": func(n *document.Node, key string) { a.ExpireIn = r.expiry(n, key) },
		"reports": func(n *document.Node, key string) { a.Reports = r.reports(n, key) },
	})
	switch {
	case public != nil && n.Get("access") != nil:
		r.problems.At(n, key, "public and access exclude each other")
	case public != nil && !*public:
		a.Access = "developer"
	}
	if a.ExposeAs != "" && len(a.Paths) == 0 {
		r.problems.At(n, key, "expose_as needs paths")
	}
	if len(a.Exclude) > 0 && len(a.Paths) == 0 && !a.Untracked {
		r.problems.At(n, key, "exclude needs paths or untracked")
	}
	return a
}

// maxExpiry is the longest time for which artifacts are kept, unless they never expire.
const maxExpiry = 100 * 365 * day

func (r *reader) expiry(n *document.Node, key string) time.Duration {
	if strings.EqualFold(n.Text, "never") {
		return -1
	}
	return r.duration(n, key, 0, maxExpiry)
}

func (r *reader) reports(n *document.Node, key string) (all []Report) {
	table := fields{"coverage_report": func(n *document.Node, key string) {
		report, path := Report{Type: "coverage_report"}, ""
		r.fields(n, key, fields{"coverage_format": r.oneOf(&report.CoverageFormat, "cobertura", "jacoco"), "path": r.textTo(&path)})
		if report.Paths = []string{path}; path == "" || report.CoverageFormat == "" {
			r.problems.At(n, key, "coverage_format and path are both necessary")
		}
		all = append(all, report)
	}}
	for _, kind := range reports {
		table[kind] = func(n *document.Node, key string) {
			all = append(all, Report{Type: kind, Paths: r.texts(n, key)})
		}
	}
	r.fields(n, key, table)
	return all
}

// maxCaches is the maximum number of caches of a job, as in GitLab, and maxKeyFiles that of the files of a key.
const maxCaches, maxKeyFiles = 4, 2

func (r *reader) caches(n *document.Node, key string) []Cache {
	items := n.Flatten()
	if len(items) > maxCaches {
		r.problems.At(n, key, "has more than %d caches", maxCaches)
	}
	all := make([]Cache, len(items))
	for i, item := range items {
		all[i] = r.cache(item, key)
	}
	return all
}

func (r *reader) cache(n *document.Node, key string) Cache {
	c := Cache{Key: "default", Policy: "pull-push", When: "on_success"}
	r.fields(n, key, fields{
		"paths": r.textsTo(&c.Paths), "untracked": r.boolTo(&c.Untracked), "unprotect": r.boolTo(&c.Unprotect),
		"when":          r.oneOf(&c.When, "on_success", "on_failure", "always"),
		"fallback_keys": r.limited(&c.FallbackKeys, 5),
		"policy": func(n *document.Node, key string) {
			if c.Policy = r.text(n, key); !strings.Contains(c.Policy, "$") {
				r.oneOf(&c.Policy, "pull", "push", "pull-push")(n, key)
			}
		},
		"key": func(n *document.Node, key string) {
			if n.Kind != document.Map {
				c.Key = r.text(n, key)
				return
			}
			c.Key = ""
			r.fields(n, key, fields{"files": r.limited(&c.KeyFiles, maxKeyFiles), "prefix": r.textTo(&c.KeyPrefix)})
			if len(c.KeyFiles) == 0 {
				r.problems.At(n, key, "files is missing")
			}
		},
	})
	return c
}

func (r *reader) environment(n *document.Node, key string) *Environment {
	e := &Environment{Action: "start"}
	if n.Kind != document.Map {
		e.Name = r.text(n, key)
	} else {
		r.fields(n, key, fields{
			"name": r.textTo(&e.Name), "url": r.textTo(&e.URL), "on_stop": r.textTo(&e.OnStop), "kubernetes": r.refused("clusters are not supported"),
			"action":          r.oneOf(&e.Action, "start", "prepare", "stop", "verify", "access"),
			"deployment_tier": r.oneOf(&e.Tier, "production", "staging", "testing", "development", "other"),
			"auto_stop_in": func(n *document.Node, key string) {
				if e.AutoStopText = r.text(n, key); !strings.Contains(e.AutoStopText, "$") && !strings.EqualFold(e.AutoStopText, "never") {
					e.AutoStopIn = r.duration(n, key, time.Second, maxExpiry)
				}
			},
		})
	}
	if e.Name == "" || len(e.Name) > maxName {
		r.problems.At(n, key, "name must have 1 to %d bytes", maxName)
	}
	return e
}

func (r *reader) release(n *document.Node, key string) *Release {
	release := &Release{}
	r.fields(n, key, fields{
		"tag_name": r.textTo(&release.TagName), "tag_message": r.textTo(&release.TagMessage), "name": r.textTo(&release.Name),
		"description": r.textTo(&release.Description), "ref": r.textTo(&release.Ref), "released_at": r.textTo(&release.ReleasedAt),
		"milestones": r.textsTo(&release.Milestones),
		"assets": func(n *document.Node, key string) {
			r.fields(n, key, fields{"links": func(n *document.Node, key string) {
				for _, item := range n.Flatten() {
					var l Link
					r.fields(item, key, fields{
						"name": r.textTo(&l.Name), "url": r.textTo(&l.URL), "filepath": r.textTo(&l.FilePath),
						"link_type": r.oneOf(&l.Type, "other", "runbook", "image", "package"),
					})
					release.Links = append(release.Links, l)
				}
			}})
		},
	})
	if release.TagName == "" || release.Description == "" {
		r.problems.At(n, key, "tag_name and description are both necessary")
	}
	return release
}

func (r *reader) idTokens(n *document.Node, key string) (all []IDToken) {
	if n.Kind != document.Map {
		r.problems.At(n, key, "must be a map of variables to tokens")
		return nil
	}
	for _, e := range n.Entries {
		t, path := IDToken{Name: e.Key}, document.Join(key, e.Key)
		r.fields(e.Value, path, fields{"aud": r.textsTo(&t.Audience)})
		if len(t.Audience) == 0 || slices.Contains(t.Audience, "") || !isName(t.Name) {
			r.problems.Add(e.File, e.Line, path, "must be a variable with an audience (aud)")
		}
		all = append(all, t)
	}
	return all
}
