package changelog

import (
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3" // unlike sigs.k8s.io/yaml it tells the order of keys

	"github.com/forgeplane/forgeplane/internal/pattern"
)

const (
	// MaxConfig is the maximum size of a configuration, in bytes.
	MaxConfig = 64 << 10

	maxDateFormat = 100
	maxGroups     = 20
	maxTagPattern = 1 << 10
)

// Config says how a changelog looks, and how tags are named.
type Config struct {
	dateFormat string
	template   template
	tags       *regexp.Regexp
	categories []titled
	// Groups are full paths of groups whose members are credited, even those who are of the project.
	Groups []string
}

// titled is the title for a value of the trailer.
type titled struct{ value, title string }

// defaultTemplate begins each entry with a line break, and so needs none at its end.
const defaultTemplate = `{% if categories %}{% else %}No changes.{% end %}
{% each categories %}
### {{ title }} ({{ count }} {% if single_change %}change{% else %}changes{% end %})
{% each entries %}

- [{{ title }}]({{ commit.reference }})\
{% if author.credit %} by {{ author.reference }}{% end %}\
{% if merge_request %} ([merge request]({{ merge_request.reference }})){% end %}
{% end %}


{% end %}
`

// defaultTags are semantic versions, with or without a "v".
const defaultTags = `^v?(?P<major>0|[1-9]\d*)\.(?P<minor>0|[1-9]\d*)\.(?P<patch>0|[1-9]\d*)(?:-(?P<pre>[0-9A-Za-z.-]+))?(?:\+(?P<meta>[0-9A-Za-z.-]+))?$`

// file is the content of a configuration. Other keys are ignored.
type file struct {
	DateFormat    string    `yaml:"date_format"`
	Template      string    `yaml:"template"`
	TagRegex      string    `yaml:"tag_regex"`
	IncludeGroups []string  `yaml:"include_groups"`
	Categories    yaml.Node `yaml:"categories"`
}

// ParseConfig reads a configuration in YAML, at most MaxConfig bytes; what it does not say is as it is without one. The error is
// an Error.
func ParseConfig(content []byte) (*Config, error) {
	if len(content) > MaxConfig {
		return nil, errorf("The configuration is larger than %d bytes", MaxConfig)
	}
	f := file{DateFormat: "%Y-%m-%d", Template: defaultTemplate, TagRegex: defaultTags}
	if err := yaml.Unmarshal(content, &f); err != nil {
		return nil, errorf("The configuration is invalid: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	c := &Config{dateFormat: f.DateFormat, Groups: f.IncludeGroups}
	switch {
	case len(f.DateFormat) > maxDateFormat:
		return nil, errorf(`The "date_format" configuration key has more than %d bytes`, maxDateFormat)
	case len(f.IncludeGroups) > maxGroups:
		return nil, errorf(`The "include_groups" configuration key has more than %d groups`, maxGroups)
	case len(f.TagRegex) > maxTagPattern:
		return nil, invalidTags("it is longer than %d bytes", maxTagPattern)
	}
	var err error
	if c.template, err = parseTemplate(f.Template); err != nil {
		return nil, err
	}
	if c.tags, err = pattern.Compile(f.TagRegex); err != nil {
		return nil, invalidTags("%v", err)
	}
	c.categories, err = categories(&f.Categories)
	return c, err
}

func invalidTags(format string, args ...any) error {
	return errorf("The regular expression to use for finding the previous tag for a version is invalid: "+format, args...)
}

// categories reads a mapping of values to titles.
func categories(n *yaml.Node) (all []titled, err error) {
	n = meant(n)
	if n.IsZero() || n.Tag == "!!null" {
		return nil, nil
	}
	if n.Kind != yaml.MappingNode {
		return nil, Error(`The "categories" configuration key must be a Hash`)
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		value, title := meant(n.Content[i]), meant(n.Content[i+1])
		if value.Kind != yaml.ScalarNode || title.Kind != yaml.ScalarNode {
			return nil, errorf(`The "categories" configuration key maps text to text, which it does not in line %d`, n.Content[i].Line)
		}
		all = append(all, titled{value.Value, title.Value})
	}
	return all, nil
}

// meant resolves an alias. It returns any other node unchanged.
func meant(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// title returns the title of a category.
func (c *Config) title(value string) string {
	for _, t := range c.categories {
		if t.value == value {
			return t.title
		}
	}
	return value
}
