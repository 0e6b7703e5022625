package ci_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/internal/ci"
	"github.com/forgeplane/forgeplane/internal/ci/condition"
	"github.com/forgeplane/forgeplane/internal/ci/config"
	"github.com/forgeplane/forgeplane/internal/ci/document"
	"github.com/forgeplane/forgeplane/internal/ci/include"
)

// tree is the files of a commit in memory. Projects are further trees.
type tree struct {
	name    string
	files   map[string]string
	changed []string
	others  map[string]*tree
}

func (t *tree) Project() string { return t.name }
func (t *tree) Commit() string  { return "1234567890" }

func (t *tree) Read(_ context.Context, path string, limit int) ([]byte, error) {
	content, ok := t.files[path]
	switch {
	case !ok:
		return nil, fs.ErrNotExist
	case len(content) > limit:
		return nil, include.ErrTooLarge
	}
	return []byte(content), nil
}

func (t *tree) Paths(context.Context) (all []string, err error) {
	for path := range t.files {
		all = append(all, path)
	}
	return all, nil
}

func (t *tree) Changed(_ context.Context, compareTo string) ([]string, bool, error) {
	switch compareTo {
	case "other":
		return []string{"far/away"}, true, nil
	case "nul":
		return nil, false, condition.UnknownRefError(compareTo)
	}
	return t.changed, t.changed != nil, nil
}

func (t *tree) Open(_ context.Context, project, ref string) (include.Files, error) {
	if other := t.others[project+"@"+ref]; other != nil {
		return other, nil
	}
	return nil, fs.ErrNotExist
}

// repository returns the files for all tests.
func repository() *tree {
	return &tree{
		name: "acme/web", changed: []string{"src/main.go", "docs/a/b.md"},
		files: map[string]string{
			"ci/base.yml": ".base: {script: from base, tags: [a], variables: {A: base, B: base}}", "ci/more.yml": "more: {script: more}",
			"ci/nested.yml": "include: /ci/base.yml\n.nested: {extends: .base}", "ci/loop.yml": "include: ci/loop.yml", "Dockerfile": "", "src/main.go": "",
			"ci/odd.yml": "\todd", "ci/text.txt": "",
		},
		others: map[string]*tree{"acme/shared@": {name: "acme/shared", files: map[string]string{
			"a.yml": "include: b.yml\n.a: {script: a}", "b.yml": ".b: {script: b}",
		}}},
	}
}

func branch(files *tree, variables ...config.Variable) *ci.Pipeline {
	return &ci.Pipeline{
		Ref: "main", Source: "push", Project: "acme/web", Files: files, Projects: files, Variables: variables,
		Predefined: []config.Variable{{Key: "CI_COMMIT_BRANCH", Value: "main"}, {Key: "CI_PIPELINE_SOURCE", Value: "push"}, {Key: "P", Value: "predefined"}},
	}
}

// shown returns the jobs of a plan, one in a line, or the error.
func shown(t *testing.T, p *ci.Pipeline, content string) string {
	t.Helper()
	l, err := p.Load(t.Context(), ".forgeplane-ci.yml", []byte(content))
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Problems) > 0 {
		return l.Problems.Error()
	}
	plan, err := p.Plan(t.Context(), l.Config)
	if err != nil {
		return err.Error()
	}
	var lines []string
	for _, j := range plan.Jobs {
		line := fmt.Sprintf("%s|%s|%s", j.Stage, j.Name, strings.Join(append(append(append([]string{}, j.BeforeScript...), j.Script...), j.AfterScript...), ";"))
		for _, v := range j.Variables {
			line += "|" + v.Key + "=" + v.Value
		}
		if j.When != "on_success" {
			line += "|" + j.When
		}
		if j.AllowFailure.Always {
			line += "|can fail"
		}
		if j.HasNeeds {
			line += "|needs"
			for _, n := range j.Needs {
				line += " " + n.Job
			}
		}
		if j.Environment != nil {
			line += "|env " + j.Environment.Name
		}
		if j.Trigger != nil {
			line += "|trigger " + j.Trigger.Project
		}
		if len(j.Tags) > 0 {
			line += "|tags " + strings.Join(j.Tags, ",")
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// expansions are configurations and their jobs, from the rules that GitLab documents.
var expansions = map[string]struct{ content, want string }{
	"one job":                  {"a: {script: x}", "test|a|x"},
	"the default stages":       {"c: {stage: deploy, script: x}\nd: {stage: .post, script: x}\nb: {script: x}\na: {stage: build, script: x}\nz: {stage: .pre, script: x}", ".pre|z|x\nbuild|a|x\ntest|b|x\ndeploy|c|x\n.post|d|x"},
	"own stages":               {"stages: [two, one]\na: {stage: one, script: x}\nb: {stage: two, script: x}", "two|b|x\none|a|x"},
	"hidden jobs":              {".a: {anything: [1]}\nb: {script: x}", "test|b|x"},
	"nested scripts":           {"a: {script: [x, [y, [z]]]}", "test|a|x;y;z"},
	"defaults":                 {"default: {before_script: [d], tags: [t]}\na: {script: x}\nb: {script: x, before_script: [own], tags: []}", "test|a|d;x|tags t\ntest|b|own;x"},
	"null inherits":            {"default: {before_script: [d], tags: [t]}\n.a: {before_script: [a]}\na: {script: x, extends: .a, before_script: null, tags: null}", "test|a|d;x|tags t"},
	"old defaults":             {"before_script: [d]\na: {script: x}", "test|a|d;x"},
	"inherited by name":        {"default: {before_script: [d], tags: [t]}\nvariables: {A: 1, B: 2}\na: {script: x, inherit: {default: [tags], variables: [B]}}\nb: {script: x, inherit: {default: false, variables: false}}", "test|a|x|B=2|tags t\ntest|b|x"},
	"variables":                {"variables: {A: 1, B: {value: two, description: d}}\na: {script: x, variables: {B: own, C: '3'}}", "test|a|x|A=1|B=own|C=3"},
	"extends":                  {".a: {script: a, variables: {A: a, B: a}, tags: [a, b]}\n.b: {extends: .a, script: b, variables: {B: b}}\nc: {extends: .b, variables: {C: c}, tags: [c]}", "test|c|b|A=a|B=b|C=c|tags c"},
	"extends of several":       {".a: {script: a, variables: {A: a}}\n.b: {script: b, variables: {A: b, B: b}}\nc: {extends: [.a, .b]}", "test|c|b|A=b|B=b"},
	"anchors":                  {".a: &a {variables: {A: 1}, script: a}\nb: {<<: *a, script: b}", "test|b|b|A=1"},
	"anchors of keys":          {".a: {&k x: 1}\nb: {script: *k}", "test|b|x"},
	"references":               {".a: {script: [a, b], variables: {A: x}}\nb: {script: [!reference [.a, script], c], variables: {A: !reference [.a, variables, A]}}", "test|b|a;b;c|A=x"},
	"references in references": {".a: {script: [a]}\n.b: {script: [!reference [.a, script], b]}\nc: {script: !reference [.b, script]}", "test|c|a;b"},
	"references to rules":      {".a: {rules: [{if: $NONE}]}\nb: {script: x, rules: [!reference [.a, rules], {when: manual}]}", "test|b|x|manual"},
	"null removes":             {".a: {script: a, variables: {A: 1}}\nb: {extends: .a, variables: null}", "test|b|a"},
	"a local file":             {"include: ci/base.yml\na: {extends: .base, variables: {B: own}}", "test|a|from base|A=base|B=own|tags a"},
	"the own file wins":        {"include: [{local: /ci/base.yml}]\n.base: {script: own}\na: {extends: .base}", "test|a|own|A=base|B=base|tags a"},
	"nested files":             {"include: ci/nested.yml\na: {extends: .nested, tags: []}", "test|a|from base|A=base|B=base"},
	"files by pattern":         {"include: ['ci/*re.yml', '/c**se.yml']\na: {extends: .base}", "test|more|more\ntest|a|from base|A=base|B=base|tags a"},
	"a file of a project":      {"include: {project: acme/shared, file: [a.yml]}\na: {script: [!reference [.a, script], !reference [.b, script]]}", "test|a|a;b"},
	"a file with a variable":   {"include: ci/$WHICH.yml", "test|more|more"},
	"a file by a rule":         {"include: [{local: ci/more.yml, rules: [{if: $NONE}]}, {local: none.yml, rules: [{exists: [none], when: always}]}]\na: {script: x}", "test|a|x"},
	"the first rule":           {"a: {script: x, rules: [{if: $NONE, when: always}, {if: '$P == \"predefined\"', when: manual, allow_failure: true, variables: {V: 1}}, {when: never}]}", "test|a|x|V=1|manual|can fail"},
	"no rule":                  {"a: {script: x, rules: [{if: $NONE}]}\nb: {script: x, rules: []}\nc: {script: x}", "test|c|x"},
	"changes":                  {"a: {script: x, rules: [{changes: [src/**/*.go]}]}\nb: {script: x, rules: [{changes: ['*.go']}]}\nc: {script: x, rules: [{changes: {paths: [far/*], compare_to: other}}]}\nd: {script: x, rules: [{changes: [docs/*]}]}\ne: {script: x, rules: [{changes: ['docs/**/*.{md,txt}']}]}", "test|a|x\ntest|c|x\ntest|e|x"},
	"exists":                   {"a: {script: x, rules: [{exists: [Dockerfile]}]}\nb: {script: x, rules: [{exists: ['**/*.go']}]}\nc: {script: x, rules: [{exists: [none, '*.go']}]}", "test|a|x\ntest|b|x"},
	"needs of a rule":          {"a: {script: x}\nb: {script: x, stage: deploy, needs: [], rules: [{if: $P, needs: [a]}]}", "test|a|x\ndeploy|b|x|needs a"},
	"only and except":          {"a: {script: x, only: [tags]}\nb: {script: x, only: [/^ma/]}\nc: {script: x, except: [main]}\nd: {script: x, only: {variables: [$P]}, except: {changes: [none]}}\ne: {script: x, only: [pushes]}\nf: {script: x, only: [branches@acme/other]}\ng: {script: x, only: [triggers, web]}", "test|b|x\ntest|d|x\ntest|e|x"},
	"manual can fail":          {"a: {script: x, when: manual}\nb: {script: x, when: manual, allow_failure: false}", "test|a|x|manual|can fail\ntest|b|x|manual"},
	"manual before rules":      {"a: {script: x, when: manual, rules: [{if: $P}]}\nb: {script: x, rules: [{when: manual}]}", "test|a|x|manual|can fail\ntest|b|x|manual"},
	"needs":                    {"a: {script: x}\nb: {script: x, needs: [a, {job: none, optional: true}]}\nc: {script: x, needs: []}", "test|a|x\ntest|b|x|needs a\ntest|c|x|needs"},
	"parallel":                 {"a: {script: x, parallel: 2}\nb: {script: x, stage: deploy, needs: [a]}", "test|a 1/2|x|CI_NODE_INDEX=1|CI_NODE_TOTAL=2\ntest|a 2/2|x|CI_NODE_INDEX=2|CI_NODE_TOTAL=2\ndeploy|b|x|needs a 1/2 a 2/2"},
	"matrix": {"a:\n  script: x\n  tags: [$A-$B]\n  parallel: {matrix: [{A: [1, 2], B: z}, {A: '3'}]}\nb: {script: x, stage: deploy, needs: [{job: a, parallel: {matrix: [{A: '2', B: z}]}}]}",
		"test|a: [1, z]|x|A=1|B=z|CI_NODE_INDEX=1|CI_NODE_TOTAL=3|tags 1-z\ntest|a: [2, z]|x|A=2|B=z|CI_NODE_INDEX=2|CI_NODE_TOTAL=3|tags 2-z\n" +
			"test|a: [3]|x|A=3|CI_NODE_INDEX=3|CI_NODE_TOTAL=3|tags 3-\ndeploy|b|x|needs a: [2, z]"},
	"an environment":          {"a: {script: x, environment: review/$CI_COMMIT_BRANCH}", "test|a|x|env review/main"},
	"a bridge":                {"default: {before_script: [d]}\na: {trigger: {project: acme/$P, strategy: depend}}\nb: {trigger: {include: ci/more.yml}}", "test|a||trigger acme/predefined\ntest|b||trigger "},
	"workflow":                {"workflow: {rules: [{if: $NONE}, {if: $P, variables: {A: workflow}}]}\nvariables: {A: 1}\na: {script: x}", "test|a|x|A=workflow"},
	"an unknown compare_to":   {"a: {script: x, rules: [{changes: {paths: [x], compare_to: nul}}]}", `.forgeplane-ci.yml:1: a: rules:changes:compare_to: there is no branch, tag or commit "nul"`},
	"classes in globs":        {"a: {script: x, rules: [{exists: ['src[^a]main.go', 'src[!a]main.go']}]}\nb: {script: x, rules: [{exists: ['src/[^a]ain.go']}]}", "test|b|x"},
	"globs in choices":        {"a: {script: x, rules: [{exists: ['{**/*.go,go.mod}']}]}\nb: {script: x, rules: [{exists: ['{go.mod,**/main.go}']}]}", "test|a|x\ntest|b|x"},
	"a raw variable":          {"a: {script: x, variables: {A: {value: $P, expand: false}}, environment: review/$A}", "test|a|x|A=$P|env review/$P"},
	"yes and no":              {"a: {script: x, when: manual, allow_failure: no}\nb: {script: x, allow_failure: On}", "test|a|x|manual\ntest|b|x|can fail"},
	"workflow without only":   {"workflow: {rules: [{if: $P}]}\na: {script: x}\nb: {script: x, only: {variables: [$P]}}\nc: {script: x, except: [main]}", "test|a|x\ntest|b|x"},
	"refs of projects":        {"a: {script: x, only: ['/^ma/@acme/web', main@acme/other]}\nb: {script: x, only: ['/^ma/@acme/other']}\nc: {script: x, only: [push]}", "test|a|x\ntest|c|x"},
	"a matrix in rules":       {"a: {script: x, parallel: {matrix: [{A: [1, 2]}]}, rules: [{if: '$A == \"2\"', variables: {A: rule}}]}\nb: {script: x, needs: [{job: a, parallel: {matrix: [{A: '2'}]}}]}", "test|a: [2]|x|A=rule|CI_NODE_INDEX=2|CI_NODE_TOTAL=2\ntest|b|x|needs a: [2]"},
	"a circle by rules":       {"a: {script: x, rules: [{if: $P, needs: [b]}]}\nb: {script: x, needs: [a]}", ".forgeplane-ci.yml:2: b:needs: the jobs need each other in a circle"},
	"workflow never":          {"workflow: {rules: [{when: never}]}\na: {script: x}", ci.ErrFiltered.Error()},
	"only edge stages":        {"a: {script: x, stage: .pre}", ci.ErrFiltered.Error()},
	"a missing need":          {"a: {script: x, needs: [b]}\nb: {script: x, rules: []}", `.forgeplane-ci.yml:1: a:needs: the job needs "b", which is not in this pipeline; it could be optional`},
	"pipeline variables":      {"a: {script: x, variables: {WHICH: job}, rules: [{if: '$WHICH == \"more\"'}]}", "test|a|x|WHICH=job"},
	"job variables":           {"a: {script: x, variables: {P: job}, rules: [{if: '$P == \"job\"'}]}", "test|a|x|P=job"},
	"accepted without effect": {"a: {script: x, release: {tag_name: v1, description: d}, id_tokens: {T: {aud: x}}, hooks: {pre_get_sources_script: y}, coverage: /x/, retry: {max: 1, when: [script_failure], exit_codes: [1]}, timeout: 1h 30m, cache: [{key: {files: [a]}, paths: [b]}], artifacts: {paths: [a], expire_in: never, reports: {junit: x}}, image: {name: i, entrypoint: ['']}, services: [{name: s, alias: t}], interruptible: true, resource_group: r, dependencies: []}", "test|a|x"},
}

func TestPlan_expandsConfigurations(t *testing.T) {
	for name, tt := range expansions {
		if got := shown(t, branch(repository(), config.Variable{Key: "WHICH", Value: "more"}), tt.content); got != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, tt.want)
		}
	}
}

func TestPlan_usesMaskedVariablesOnlyInExpressions(t *testing.T) {
	p := branch(repository())
	p.Masked = []config.Variable{{Key: "TOKEN", Value: "secret"}}
	for content, want := range map[string]string{
		`a: {script: x, variables: {TOKEN: main}, environment: review/$TOKEN, tags: [$TOKEN], rules: [{if: '$TOKEN == "secret"', changes: [src/$TOKEN.go]}]}`: "test|a|x|TOKEN=main|env review/main|tags main",
		`a: {script: x, variables: {TOKEN: nul}, rules: [{if: $TOKEN, changes: {paths: [x], compare_to: $TOKEN}}]}`:                                           `.forgeplane-ci.yml:1: a: rules:changes:compare_to: there is no branch, tag or commit "nul"`,
		`{include: [{local: ci/more.yml, rules: [{if: '$TOKEN == "secret"'}]}]}`:                                                                              "test|more|more",
		`{workflow: {rules: [{if: '$TOKEN == "secret"'}]}, a: {script: x, only: {variables: ['$TOKEN == "secret"']}}}`:                                        "test|a|x",
	} {
		if got := shown(t, p, content); got != want || strings.Contains(got, "secret") {
			t.Errorf("%s: got %s, want %s", content, got, want)
		}
	}
}

func TestPlan_dependsOnSource(t *testing.T) {
	const content = "a: {script: x}\nb: {script: x, only: [merge_requests]}\nc: {script: x, only: [triggers]}\nd: {script: x, only: [tags]}\ne: {script: x, only: [v1]}\n" +
		"f: {script: x, only: [schedule, trigger, parent_pipelines]}"
	for source, want := range map[string]string{"push": "a", "merge_request_event": "b", "trigger": "a c f", "tag": "a d e", "schedule": "a f", "parent_pipeline": "a f"} {
		p := branch(repository())
		if p.Source = source; source == "tag" {
			p.Source, p.Tag, p.Ref = "push", true, "v1"
		}
		var names []string
		for _, line := range strings.Split(shown(t, p, content), "\n") {
			names = append(names, strings.Split(line, "|")[1])
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: got %s, want %s", source, got, want)
		}
	}
	p := branch(repository())
	p.Source = "merge_request_event"
	if got := shown(t, p, "workflow: {rules: [{when: always}]}\na: {script: x}\nb: {script: x, only: [branches]}"); got != "test|a|x" {
		t.Errorf("with rules of the workflow: got %s", got)
	}
}

func TestPlan_ofTagHasAllChanges(t *testing.T) {
	files := repository()
	files.changed = nil
	if got := shown(t, branch(files), "a: {script: x, rules: [{changes: [none]}]}"); got != "test|a|x" {
		t.Errorf("got %s", got)
	}
}

// mistakes are configurations and what is wrong with them.
var mistakes = map[string]string{
	"":                           ".forgeplane-ci.yml: the file is empty",
	"- a":                        ".forgeplane-ci.yml:1: the file must be a map",
	"a: [":                       ".forgeplane-ci.yml:1: invalid YAML",
	"a: &a [*a]":                 "contains itself",
	"a: {script: x}\n---\nb: {}": "inputs (spec) are not supported",
	"a: \xff":                    ".forgeplane-ci.yml: the file is not UTF-8",
	"a: {script: !odd x}":        ":1: the tag !odd is unknown",
	".a: {script: x}":            "no job that is not hidden",
	"a: x":                       ".forgeplane-ci.yml:1: a: unknown keyword, or a job that is not a map",
	"a: {script: x, colour: 1}\nb: {size: 2}": ".forgeplane-ci.yml:1: a:colour: unknown keyword; those here are after_script, allow_failure,",
	"b:\n  size: 2\n  script: x\n  when: odd": ".forgeplane-ci.yml:4: b:when: must be one of on_success,",
	"a: {tags: [x]}":                      ".forgeplane-ci.yml:1: a: script is missing",
	"a: {script: x, stage: odd}":          `a:stage: the stage "odd" is not one of .pre, build, test, deploy, .post`,
	"a: {extends: b}":                     `a:extends: there is no job "b"`,
	"a: {extends: b}\nb: {extends: a}":    "b:extends: the jobs extend each other in a circle: a, b, a",
	"a: {script: !reference [b, script]}": "a:script: !reference [b, script] could not be found",
	"a: {script: !reference [a, script]}": "is part of a circle",
	"a: {script: x, needs: [b]}":          `a:needs: there is no job "b"`,
	"a: {script: x, needs: [a]}":          "the job needs itself",
	"a: {script: x, needs: [b]}\nb: {script: x, needs: [c]}\nc: {script: x, needs: [a]}": "c:needs: the jobs need each other in a circle",
	"a: {script: x, needs: [b]}\nb: {script: x, stage: deploy}":                          `the job "b" is in a later stage`,
	"a: {script: x, needs: [{project: p, job: b, ref: main}]}":                           "jobs of other pipelines and projects are not supported",
	"a: {script: x, dependencies: [b]}\nb: {script: x}":                                  `a:dependencies: the job "b" is not in an earlier stage`,
	"a: {script: x, rules: [{if: $A ==}]}":                                               "a:rules:if: invalid expression",
	"a: {script: x, rules: [], only: [tags]}":                                            "a:only: cannot be used with rules",
	"a: {script: x, when: delayed}":                                                      "when: delayed and start_in need each other",
	"a: {script: x, timeout: soon}":                                                      `a:timeout: "soon" is not a duration`,
	"a: {script: x, parallel: 201}":                                                      "a:parallel: must be a number from 1 to 200",
	"a: {script: x, parallel: {matrix: [{A: [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15], B: [1,2,3,4,5,6,7,8,9,10,11,12,13,14]}]}}": "makes more than 200 jobs",
	"a: {script: x, parallel: {matrix: [{A: [" + strings.Repeat("x", 251) + "]}]}}":                                           "a:parallel: the values make the name of a job longer than 255 bytes",
	"a: {trigger: p, script: x}":                                      "a:script: cannot be used with trigger",
	"a: {trigger: {project: p, include: f}}":                          "either project or include is necessary",
	"a: {script: x, secrets: {}}":                                     "external secrets are not supported",
	"a: {script: x, artifacts: {reports: {odd: x}}}":                  "a:artifacts:reports:odd: unknown keyword",
	"a: {script: x, environment: {name: e, on_stop: b}}":              `there is no job "b"`,
	"a: {script: x, retry: 3}":                                        "a:retry: must be a number from 0 to 2",
	"include: {remote: 'https://x'}\na: {script: x}":                  "include:remote: files of other servers cannot be included",
	"include: https://x/a.yml\na: {script: x}":                        "files of other servers cannot be included",
	"include: none.yml\na: {script: x}":                               `.forgeplane-ci.yml:1: include:local: there is no file "none.yml"`,
	"include: ci/text.txt\na: {script: x}":                            "must end in .yml or .yaml",
	"include: ci/odd.yml\na: {script: x}":                             "ci/odd.yml:1: invalid YAML",
	"include: ci/loop.yml\na: {script: x}":                            "ci/loop.yml:1: include:local: more than 20 files include each other",
	"include: {project: acme/none, file: a.yml}\na: {script: x}":      `there is no project "acme/none" with the ref "HEAD", or you cannot read its code`,
	"include: {project: acme/shared, file: none.yml}\na: {script: x}": `there is no file "acme/shared:none.yml"`,
	"variables: {A: {value: x, options: [y]}}\na: {script: x}":        "variables:A: value must be one of the options",
	"variables: {A-B: x}\na: {script: x}":                             "variables:A-B: the name of a variable",
	"default: {script: x}\na: {script: x}":                            "default:script: unknown keyword",
	"a: {script: x, except: ['/^(?!main)/']}":                         `.forgeplane-ci.yml:1: a:except: the pattern "/^(?!main)/" is invalid`,
	"a: {script: x, only: [/main]}":                                   "a:only: the pattern \"/main\" is invalid: a pattern must be between slashes",
	"a: {script: x, services: [[" + strings.Repeat("s,", 51) + "]]}":  "a:services: must be a list of at most 50 images",
}

func TestLoad_reportsMistakes(t *testing.T) {
	for content, want := range mistakes {
		l, err := branch(repository()).Load(t.Context(), ".forgeplane-ci.yml", []byte(content))
		if err != nil {
			t.Errorf("%s: %v", content, err)
			continue
		}
		if got := l.Problems.Error(); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", content, got, want)
		}
	}
}

func TestLoad_reportsSeveralMistakes(t *testing.T) {
	l, err := branch(repository()).Load(t.Context(), "x.yml", []byte("a: {script: x, odd: 1}\nb:\n  script: {}\n  timeout: soon\n"))
	if err != nil || len(l.Problems) != 4 || l.Problems[2] != (document.Problem{File: "x.yml", Line: 4, Key: "b:timeout", Text: `"soon" is not a duration such as 3600, 1h 30m or 2 weeks`}) {
		t.Errorf("got %v, %v", l.Problems.Strings(), err)
	}
}

func TestLoad_warnsAboutRepeatedKeys(t *testing.T) {
	l, err := branch(repository()).Load(t.Context(), "x.yml", []byte("a: {script: x}\na: {script: y}\n"))
	if err != nil || len(l.Problems) > 0 || l.Warnings.Error() != "x.yml:2: a: the key is given twice, and this value replaces the one in line 1" {
		t.Errorf("got %v, %v, %v", l.Problems, l.Warnings, err)
	}
}

func TestRender_givesTheSameJobs(t *testing.T) {
	for name, tt := range expansions {
		p := branch(repository(), config.Variable{Key: "WHICH", Value: "more"})
		l, err := p.Load(t.Context(), "x.yml", []byte(tt.content))
		if err != nil || l.Document == nil {
			t.Fatal(err)
		}
		text, err := document.Render(l.Document)
		if err != nil {
			t.Fatal(err)
		}
		if got := shown(t, p, text); !strings.HasPrefix(tt.want, ".forgeplane-ci.yml:") && got != tt.want {
			t.Errorf("%s: rendered as\n%s\nit becomes\n%s", name, text, got)
		}
	}
}

// FuzzLoad looks for configurations with which reading or planning panics or fails.
func FuzzLoad(f *testing.F) {
	for _, tt := range expansions {
		f.Add([]byte(tt.content))
	}
	for content := range mistakes {
		f.Add([]byte(content))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		p := branch(repository())
		l, err := p.Load(t.Context(), "x.yml", content)
		if err != nil {
			t.Fatalf("%q: %v", content, err)
		}
		if len(l.Problems) > 0 {
			return
		}
		if _, err := document.Render(l.Document); err != nil {
			t.Errorf("%q is not rendered: %v", content, err)
		}
		_, err = p.Plan(t.Context(), l.Config)
		if is := document.Problems(nil); err != nil && !errors.Is(err, ci.ErrFiltered) && !errors.As(err, &is) {
			t.Errorf("%q: %v", content, err)
		}
	})
}
