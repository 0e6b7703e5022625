package v1alpha1_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

func TestNaturalName(t *testing.T) {
	tests := map[string]struct {
		parts  []string
		prefix string
	}{
		"is readable":                   {[]string{"web", "main"}, "web-main-"},
		"accepts any branch":            {[]string{"web", "release/*.x"}, "web-release---x-"},
		"lower-cases":                   {[]string{"web", "Main"}, "web-main-"},
		"accepts parts without letters": {[]string{"", "*"}, "x-"},
		"accepts other alphabets":       {[]string{"web", "ветка"}, "web-"},
		"shortens long parts":           {[]string{strings.Repeat("a", 300), "main"}, strings.Repeat("a", 46) + "-"},
		"begins and ends with words":    {[]string{"-web-", "-main-"}, "web---main-"},
	}
	seen := map[string]string{}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			name := v1alpha1.NaturalName(tt.parts...)
			if !strings.HasPrefix(name, tt.prefix) {
				t.Errorf("NaturalName(%q) = %q, want the prefix %q", tt.parts, name, tt.prefix)
			}
			if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
				t.Errorf("NaturalName(%q) = %q: %v", tt.parts, name, problems)
			}
			if other, ok := seen[name]; ok {
				t.Errorf("NaturalName(%q) = %q, which is also that of %s", tt.parts, name, other)
			}
			seen[name] = title
		})
	}
	if v1alpha1.NaturalName("a", "bc") == v1alpha1.NaturalName("ab", "c") {
		t.Error("the bounds between the parts make no difference")
	}
}
