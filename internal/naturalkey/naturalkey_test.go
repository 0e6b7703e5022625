package naturalkey_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/forgeplane/forgeplane/internal/naturalkey"
)

func TestName(t *testing.T) {
	tests := map[string]struct {
		parts  []string
		prefix string
	}{
		"can be read":                {[]string{"web", "main"}, "web-main-"},
		"takes any branch":           {[]string{"web", "release/*.x"}, "web-release---x-"},
		"lower-cases":                {[]string{"web", "Main"}, "web-main-"},
		"takes what has no letters":  {[]string{"", "*"}, "x-"},
		"takes other alphabets":      {[]string{"web", "ветка"}, "web-"},
		"cuts what is long":          {[]string{strings.Repeat("a", 300), "main"}, strings.Repeat("a", 46) + "-"},
		"begins and ends with words": {[]string{"-web-", "-main-"}, "web---main-"},
	}
	seen := map[string]string{}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			name := naturalkey.Name(tt.parts...)
			if !strings.HasPrefix(name, tt.prefix) {
				t.Errorf("Name(%q) = %q, want the prefix %q", tt.parts, name, tt.prefix)
			}
			if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
				t.Errorf("Name(%q) = %q: %v", tt.parts, name, problems)
			}
			if other, ok := seen[name]; ok {
				t.Errorf("Name(%q) = %q, which is also that of %s", tt.parts, name, other)
			}
			seen[name] = title
		})
	}
	if naturalkey.Name("a", "bc") == naturalkey.Name("ab", "c") {
		t.Error("the bounds between the parts make no difference")
	}
}
