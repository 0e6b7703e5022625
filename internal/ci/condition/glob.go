package condition

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/forgeplane/forgeplane/internal/pattern"
)

const (
	// maxComparisons is the maximum number of comparisons of paths and variables with patterns while one configuration is expanded. Long ones
	// count as several.
	maxComparisons = 2_000_000
	// perComparison is the product of the sizes of a pattern and a text that counts as another comparison.
	perComparison = 1024
	// maxGlob is the maximum size of a pattern, as that of a path.
	maxGlob = 4096
)

// ErrTooManyComparisons says that the patterns of a configuration, and what they are compared with, are too many or too long.
var ErrTooManyComparisons = errors.New("the patterns of the configuration take too many comparisons with paths and variables")

// Paths are paths that patterns are compared with. It remembers the answers.
type Paths struct {
	sorted []string
	known  map[string]bool
	// left is the budget of the context.
	left *int
}

// NewPaths returns paths in any order. Each counts as a comparison.
func (c *Context) NewPaths(paths []string) *Paths {
	c.left -= len(paths)
	sorted := slices.Clone(paths)
	slices.Sort(sorted)
	return &Paths{sorted: sorted, known: map[string]bool{}, left: &c.left}
}

// Any reports whether a pattern matches one of the paths. A malformed or very long pattern matches none.
func (p *Paths) Any(ctx context.Context, glob string) (bool, error) {
	glob = strings.TrimPrefix(strings.TrimPrefix(glob, "./"), "/")
	if *p.left--; *p.left < 0 {
		return false, ErrTooManyComparisons
	}
	if found, ok := p.known[glob]; ok {
		return found, nil
	}
	found, err := p.find(ctx, glob)
	if err == nil {
		p.known[glob] = found
	}
	return found, err
}

func (p *Paths) find(ctx context.Context, glob string) (bool, error) {
	if !strings.ContainsAny(glob, special) {
		_, found := slices.BinarySearch(p.sorted, glob)
		return found, nil
	}
	matched, err := p.match(ctx, glob, special, compile, 1)
	return len(matched) > 0, err
}

// match returns the first paths that a pattern matches. special are the characters that can be more than themselves.
func (p *Paths) match(ctx context.Context, glob, special string, compile func(string) (*regexp.Regexp, error), most int) (matched []string, err error) {
	if len(glob) > maxGlob {
		return nil, nil
	}
	re, err := compile(glob)
	if err != nil {
		return nil, nil //nolint:nilerr // a pattern with a mistake matches no path
	}
	fixed := glob[:strings.IndexAny(glob+special[:1], special)]
	from, _ := slices.BinarySearch(p.sorted, fixed)
	for _, path := range p.sorted[from:] {
		if !strings.HasPrefix(path, fixed) || len(matched) == most {
			break
		}
		if *p.left -= 1 + len(glob)*len(path)/perComparison; *p.left < 0 {
			return nil, ErrTooManyComparisons
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if re.MatchString(path) {
			matched = append(matched, path)
		}
	}
	return matched, nil
}

// Matching returns the first paths that a pattern of include:local matches, in which * matches no slash, and ** matches anything.
func (p *Paths) Matching(ctx context.Context, glob string, most int) ([]string, error) {
	return p.match(ctx, strings.TrimPrefix(glob, "/"), "*", compileStars, most)
}

// compileStars returns the expression of a pattern of include:local, in which only stars are special.
func compileStars(glob string) (*regexp.Regexp, error) {
	e := strings.ReplaceAll(regexp.QuoteMeta(glob), `\*\*`, `.*`)
	return whole(strings.ReplaceAll(e, `\*`, `[^/]*`))
}

// whole compiles an expression for whole paths. pattern.Whole takes milliseconds for each [^/], and a configuration can have thousands of
// patterns; it makes safe what others write, and the expressions here are complete or invalid.
func whole(e string) (*regexp.Regexp, error) { return pattern.Compile(`(?s)\A(?:` + e + `)\z`) }

// special are the characters that make a pattern of a path.
const special = `*?[{\`

// compile returns the expression of a pattern as in Ruby's File.fnmatch with FNM_PATHNAME, FNM_DOTMATCH and FNM_EXTGLOB: *, ? and [a-z] match no
// slash, **/ matches any directories, and {a,b} is a choice.
func compile(glob string) (*regexp.Regexp, error) {
	var e strings.Builder
	var choices []bool // whether each open choice begins a component of the path
	begins := true
	for i := 0; i < len(glob); {
		rest := glob[i:]
		end := strings.IndexByte(rest, ']')
		switch c := rest[0]; {
		case strings.HasPrefix(rest, "**/") && begins:
			e.WriteString(`(?:[^/]+/)*`)
			i += 3
			continue
		case c == '*':
			e.WriteString(`[^/]*`)
		case c == '?':
			e.WriteString(`[^/]`)
		case c == '[' && end > 1:
			e.WriteString(class(rest[1:end]))
			i += end
		case c == '{':
			e.WriteString("(?:")
			choices = append(choices, begins)
			i++
			continue
		case c == '}' && len(choices) > 0:
			e.WriteString(")")
			choices = choices[:len(choices)-1]
		case c == ',' && len(choices) > 0:
			e.WriteString("|")
			begins = choices[len(choices)-1]
			i++
			continue
		case c == '\\' && len(rest) > 1:
			e.WriteString(regexp.QuoteMeta(rest[1:2]))
			i++
		default:
			e.WriteString(regexp.QuoteMeta(rest[:1]))
		}
		begins = rest[0] == '/'
		i++
	}
	return whole(e.String())
}

// class returns the expression for the characters between brackets. It never matches a slash, also not within a range.
func class(set string) string {
	var e strings.Builder
	begin := "["
	if set[0] == '!' || set[0] == '^' {
		begin, set = "[^/", set[1:]
	}
	characters := []rune(set)
	for i := 0; i < len(characters); i++ {
		first, last := characters[i], characters[i]
		if i+2 < len(characters) && characters[i+1] == '-' {
			last = characters[i+2]
			i += 2
		}
		if first <= '/' && '/' <= last {
			between(&e, first, '/'-1)
			first = '/' + 1
		}
		between(&e, first, last)
	}
	if begin == "[" && e.Len() == 0 {
		return `[^\x00-\x{10FFFF}]`
	}
	return begin + e.String() + "]"
}

// between writes a range of characters, unless it is empty.
func between(e *strings.Builder, first, last rune) {
	if first <= last {
		fmt.Fprintf(e, `\x{%x}-\x{%x}`, first, last)
	}
}
