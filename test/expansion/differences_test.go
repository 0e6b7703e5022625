package expansion_test

// Reasons of several differences.
const (
	fewDefaults  = "gitlab-ci-local inherits only some of the keywords of default, and GitLab all of them."
	dropped      = "gitlab-ci-local drops the keywords that its executors cannot use."
	noSelection  = "gitlab-ci-local does not evaluate only and except."
	noWorkflow   = "gitlab-ci-local does not evaluate workflow."
	manualFails  = "A manual job without rules can fail in GitLab by default, which gitlab-ci-local leaves out."
	bridgeAlone  = "Jobs with trigger have no scripts or images, so they inherit none in GitLab."
	noRawAtAll   = "gitlab-ci-local does not know expand."
	textOfNumber = "Forgeplane keeps the text of a number, so that nobody has to know that 1.10 is 1.1 and 0755 is 493."
)

// differences has the reason of each difference, by configuration and key. A difference is on purpose: a mistake of Forgeplane is mended.
var differences = map[string]map[string]string{
	"cache-more": {"job.cache": dropped},
	"default-more": {
		"inherits.id_tokens": fewDefaults, "inherits.interruptible": fewDefaults, "inherits.pre_get_sources": fewDefaults, "inherits.retry": fewDefaults,
		"inherits.tags": fewDefaults, "inherits.timeout": fewDefaults, "own.id_tokens": fewDefaults, "own.pre_get_sources": fewDefaults,
	},
	"environment":                {"stop.selected": manualFails},
	"image-more":                 {"job.image": dropped},
	"inherit-default":            {"all.retry": fewDefaults, "all.tags": fewDefaults},
	"needs-matrix":               {"one.needs": dropped},
	"only-others":                {"merge.selected": noSelection, "other.selected": noSelection, "tags.selected": noSelection},
	"reference-over-map":         {"job.variables": "GitLab extends jobs before it resolves references, so the reference replaces the map, which gitlab-ci-local merges into it."},
	"refused-only-text":          {refused: "Forgeplane takes a single ref for a list of one, as with other lists, which GitLab refuses."},
	"refused-rules-with-only":    {refused: "GitLab refuses rules together with only, which the schema of gitlab-ci-local does not say."},
	"retry-without-max":          {"job.retry": "GitLab takes retry without max for no retry at all, and Forgeplane for as many as possible, because it is a wish to retry."},
	"rules-needs":                {"test.selected": "gitlab-ci-local ignores the needs of rules."},
	"rules-pattern-of-undefined": {"job.selected": "In GitLab, !~ holds for an undefined variable, and in gitlab-ci-local it does not."},
	"services-more":              {"job.services": dropped},
	"trigger-defaults":           {"job.before_script": bridgeAlone, "job.image": bridgeAlone},
	"variables-numbers":          {"job.variables": textOfNumber},
	"variables-raw":              {".variables": noRawAtAll},
	"variables-raw-job":          {refused: noRawAtAll},
	"when-manual":                {"job.selected": manualFails},
	"workflow":                   {"job.selected": noWorkflow},
	"workflow-never":             {"job.selected": noWorkflow},
}
