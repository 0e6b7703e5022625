package frame_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/frame"
)

func TestColumn_showsAsMuchAsFits(t *testing.T) {
	wide, wider := strings.Repeat("w", 100), strings.Repeat("w", 300)
	for name, c := range map[string]struct {
		texts []string
		want  string
	}{
		"nothing":          {nil, ""},
		"one":              {[]string{"Maintainers"}, "Maintainers"},
		"several":          {[]string{"No one", "Ada", "ops"}, "No one, Ada, ops"},
		"too many":         {[]string{wide, wide, wide, "Ada"}, wide + ", " + wide + " and 2 more"},
		"one too wide":     {[]string{wider, "Ada"}, wider + " and 1 more"},
		"a field overruns": {[]string{strings.Repeat("w", 2000)}, strings.Repeat("w", 1000) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(frame.Column(c.texts)).To(Equal(c.want))
		})
	}
}
