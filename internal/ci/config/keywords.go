package config

import (
	"maps"
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

func (r *reader) image(n *document.Node, key string) *Image {
	i := &Image{}
	r.container(i, n, key, fields{})
	return i
}

func (r *reader) service(n *document.Node, key string) (i Image) {
	r.container(&i, n, key, fields{
		"alias": set(&i.Alias, r.text), "command": set(&i.Command, r.texts), "variables": set(&i.Variables, r.variables),
	})
	return i
}

// container reads the name of an image, or a map with the keywords of all images and those of the table.
func (r *reader) container(i *Image, n *document.Node, key string, table fields) {
	if n.Kind != document.Map {
		i.Name = r.text(n, key)
		return
	}
	maps.Copy(table, fields{
		"name": set(&i.Name, r.text), "entrypoint": set(&i.Entrypoint, r.texts), "kubernetes": ignored,
		"pull_policy": r.eachOf(&i.PullPolicies, "always", "if-not-present", "never"),
		"docker": func(n *document.Node, key string) {
			r.fields(n, key, fields{"platform": set(&i.Platform, r.text), "user": set(&i.User, r.text)})
		},
	})
	if r.fields(n, key, table); i.Name == "" {
		r.problems.At(n, key, "name is missing")
	}
}

func (r *reader) services(n *document.Node, key string) []Image {
	items := n.Flatten()
	if n.Kind != document.List || len(items) > maxServices {
		r.problems.At(n, key, "must be a list of at most %d images", maxServices)
		return nil
	}
	all := []Image{}
	for _, item := range items {
		all = append(all, r.service(item, key))
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
		"name": set(&a.Name, r.text), "paths": set(&a.Paths, r.texts), "exclude": set(&a.Exclude, r.texts), "untracked": set(&a.Untracked, r.bool),
		"when": r.oneOf(&a.When, "on_success", "on_failure", "always"), "access": r.oneOf(&a.Access, "all", "developer", "maintainer", "none"),
		"public": set(&public, r.optionalBool), "expose_as": set(&a.ExposeAs, r.text), "expire_in": set(&a.ExpireIn, r.expiry),
		"reports": set(&a.Reports, r.reports),
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
		r.fields(n, key, fields{"coverage_format": r.oneOf(&report.CoverageFormat, "cobertura", "jacoco"), "path": set(&path, r.text)})
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
		"paths": set(&c.Paths, r.texts), "untracked": set(&c.Untracked, r.bool), "unprotect": set(&c.Unprotect, r.bool),
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
			r.fields(n, key, fields{"files": r.limited(&c.KeyFiles, maxKeyFiles), "prefix": set(&c.KeyPrefix, r.text)})
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
			"name": set(&e.Name, r.text), "url": set(&e.URL, r.text), "on_stop": set(&e.OnStop, r.text), "kubernetes": r.refused("clusters are not supported"),
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
		"tag_name": set(&release.TagName, r.text), "tag_message": set(&release.TagMessage, r.text), "name": set(&release.Name, r.text),
		"description": set(&release.Description, r.text), "ref": set(&release.Ref, r.text), "released_at": set(&release.ReleasedAt, r.text),
		"milestones": set(&release.Milestones, r.texts),
		"assets": func(n *document.Node, key string) {
			r.fields(n, key, fields{"links": func(n *document.Node, key string) {
				for _, item := range n.Flatten() {
					var l Link
					r.fields(item, key, fields{
						"name": set(&l.Name, r.text), "url": set(&l.URL, r.text), "filepath": set(&l.FilePath, r.text),
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
		r.fields(e.Value, path, fields{"aud": set(&t.Audience, r.texts)})
		if len(t.Audience) == 0 || slices.Contains(t.Audience, "") || !isName(t.Name) {
			r.problems.Add(e.File, e.Line, path, "must be a variable with an audience (aud)")
		}
		all = append(all, t)
	}
	return all
}
