package variable

import (
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

func TestCheck_refusesWhatCannotBeMaskedOrUsed(t *testing.T) {
	plain, masked := v1alpha1.VariableSpec{}, v1alpha1.VariableSpec{Masked: true}
	raw := v1alpha1.VariableSpec{Masked: true, Raw: true}
	for name, tt := range map[string]struct {
		spec  v1alpha1.VariableSpec
		value string
		want  error
	}{
		"an empty value":                                 {plain, "", nil},
		"several lines":                                  {plain, "a\nb\r\n", nil},
		"the longest value":                              {plain, strings.Repeat("a", MaxValue), nil},
		"a value that is too long":                       {plain, strings.Repeat("a", MaxValue+1), ErrTooLong},
		"a zero byte":                                    {plain, "a\x00b", ErrBinary},
		"what is not UTF-8":                              {plain, "a\xff", ErrBinary},
		"a masked value of 8 characters":                 {masked, "abcdef1_", nil},
		"all characters of masked values":                {masked, "azAZ09_+=/@:.~-", nil},
		"a masked value of 7 characters":                 {masked, "abcdefg", ErrNotMaskable},
		"a masked value of 7 characters and 14 bytes":    {raw, "äöüßäöü", ErrNotMaskable},
		"a masked value with a dollar":                   {masked, "abcdefg$HOME", ErrNotMaskable},
		"a masked value with a space":                    {masked, "abcdefg hij", ErrNotMaskable},
		"a masked value with a final line break":         {masked, "abcdefghij\n", ErrNotMaskable},
		"a raw masked value with a dollar":               {raw, "abcdefg$HOMEä", nil},
		"a raw masked value with a space":                {raw, "abcdefg hij", ErrNotMaskable},
		"a raw masked value with a space at the end":     {raw, "abcdefghij ", ErrNotMaskable},
		"a raw masked value with a line break":           {raw, "abcdefg\nhij", ErrNotMaskable},
		"a masked value that is too long":                {masked, strings.Repeat("a", MaxValue+1), ErrTooLong},
		"a raw value of 8 spaces, which nothing remains": {raw, strings.Repeat(" ", minMasked), ErrNotMaskable},
	} {
		t.Run(name, func(t *testing.T) {
			err := Check(&tt.spec, tt.value)
			if !errors.Is(err, tt.want) || tt.want == nil && err != nil {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if err != nil && len(tt.value) > 2 && strings.Contains(err.Error(), tt.value) {
				t.Errorf("the error contains the value: %v", err)
			}
		})
	}
}

func TestMatches_environmentAndWildcards(t *testing.T) {
	for _, tt := range []struct {
		scope, environment string
		want               bool
	}{
		{"*", "", true},
		{"*", "production", true},
		{"production", "production", true},
		{"production", "", false},
		{"production", "Production", false},
		{"production", "production/eu", false},
		{"review/*", "review/", true},
		{"review/*", "review/a/b", true},
		{"review/*", "review", false},
		{"review/*", "pre/review/a", false},
		{"*/eu", "production/eu", true},
		{"*/eu", "production/eu/1", false},
		{"r*w/*-x", "review/a-x", true},
		{"r*w/*-x", "review-x", false},
		{"a*a", "a", false},
		{"a**a", "aa", true},
		{"**", "", false},
		{"re.iew", "review", false},
	} {
		if got := matches(tt.scope, tt.environment); got != tt.want {
			t.Errorf("%q and %q: got %t", tt.scope, tt.environment, got)
		}
	}
}

func TestMoreSpecific_ordersScopesOfAnEnvironment(t *testing.T) {
	g := NewWithT(t)
	inOrder := []string{"review/a", "review/*", "rev*/*", "*/a", "*"}
	for i, a := range inOrder {
		for j, b := range inOrder {
			g.Expect(moreSpecific(a, b, "review/a")).To(Equal(i < j), "%s and %s", a, b)
		}
	}
	g.Expect(moreSpecific("*", "**", "x")).NotTo(Equal(moreSpecific("**", "*", "x")), "every process decides alike")
}
