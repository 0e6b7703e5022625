package cleanup_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forgeplane/forgeplane/internal/registry/cleanup"
)

// words is an expression with the names that it stands for, without an expression.
type words struct {
	expression string
	has        func(name string) bool
}

// anyWords returns an expression of a random form.
func anyWords(random *rand.Rand, known []string) words {
	digits := func(name string) int { return len(name) - 1 }
	switch random.IntN(8) {
	case 0:
		return words{".*", func(string) bool { return true }}
	case 1:
		return words{`v\d`, func(name string) bool { return name[0] == 'v' && digits(name) == 1 }}
	case 2:
		return words{"v1.*", func(name string) bool { return strings.HasPrefix(name, "v1") }}
	case 3:
		return words{"(?i)V[0-9]{1,2}[05]|V5", func(name string) bool {
			return name == "v5" || name[0] == 'v' && digits(name) > 1 && strings.ContainsAny(name[len(name)-1:], "05")
		}}
	case 4:
		return words{".*[^02468]", func(name string) bool { return !strings.ContainsAny(name[len(name)-1:], "02468") }}
	case 5:
		one, other := anyWords(random, known), anyWords(random, known)
		return words{one.expression + "|" + other.expression, func(name string) bool { return one.has(name) || other.has(name) }}
	default:
		listed := slices.DeleteFunc(slices.Clone(known), func(string) bool { return random.IntN(2) == 0 })
		return words{strings.Join(append(listed, "nothing"), "|"), func(name string) bool { return slices.Contains(listed, name) }}
	}
}

// anySpan returns a span of one to three units, and its length.
func anySpan(random *rand.Rand) (text string, length time.Duration) {
	spellings := []struct {
		length time.Duration
		names  []string
	}{
		{time.Second, []string{"s", "sec", " second", " seconds"}},
		{time.Minute, []string{"m", "min", " minute", " Minutes"}},
		{time.Hour, []string{"h", " hr", " hour", " hours"}},
		{24 * time.Hour, []string{"d", " day", " days"}},
		{7 * 24 * time.Hour, []string{"w", " week", " weeks"}},
		{30 * 24 * time.Hour, []string{"mo", "month", " months"}},
		{365 * 24 * time.Hour, []string{"y", " year", " years"}},
	}
	for range 1 + random.IntN(3) {
		unit, n := spellings[random.IntN(len(spellings))], 1+random.IntN(14)
		if text != "" {
			text += []string{" ", ", ", " and "}[random.IntN(3)]
		}
		text += fmt.Sprintf("%d%s", n, unit.names[random.IntN(len(unit.names))])
		length += time.Duration(n) * unit.length
	}
	return text, length
}

// model selects tags as the document describes it, tag by tag: a tag goes unless a rule spares it.
type model struct {
	remove words
	keep   *words
	keepN  int64
	older  time.Duration // 0 for none
}

func (m model) matching(t cleanup.Tag) bool {
	return t.Name != "latest" && m.remove.has(t.Name) && (m.keep == nil || !m.keep.has(t.Name))
}

func (m model) deletes(t cleanup.Tag, of []cleanup.Tag) bool {
	date := func(t cleanup.Tag) time.Time {
		if t.Created.IsZero() {
			return noon
		}
		return t.Created
	}
	if !m.matching(t) {
		return false
	}
	newer := int64(0)
	for _, o := range of {
		if m.matching(o) && (date(o).After(date(t)) || date(o).Equal(date(t)) && o.Name > t.Name) {
			newer++
		}
	}
	if newer < m.keepN {
		return false
	}
	return m.older == 0 || noon.Sub(date(t)) > m.older
}

// anyTags returns up to thirty tags. Few of their ages, which are multiples of a step, are different. Some are missing, some in the future.
func anyTags(random *rand.Rand, step time.Duration) (tags []cleanup.Tag) {
	for i := range random.IntN(30) {
		tag := cleanup.Tag{Name: fmt.Sprintf("v%d", i)}
		if i == 3 {
			tag.Name = "latest"
		}
		if age := random.IntN(12) - 2; age != 0 {
			tag.Created = noon.Add(-time.Duration(age) * step)
		}
		tags = append(tags, tag)
	}
	return tags
}

func TestSelect_agreesWithModel(t *testing.T) {
	const rounds = 3000
	random := rand.New(rand.NewPCG(7, 11))
	deleted, spared := 0, 0
	for round := range rounds {
		m, span, step := model{keepN: int64(random.IntN(8) - 2)}, "", time.Hour
		if random.IntN(4) > 0 {
			// Some tags are exactly as old as the span, and some a second older.
			span, m.older = anySpan(random)
			step = m.older / time.Duration(1+random.IntN(6))
			if random.IntN(4) == 0 {
				step = m.older + time.Second
			}
		}
		tags := anyTags(random, step)
		var known []string
		for _, tag := range tags {
			known = append(known, tag.Name)
		}
		m.remove = anyWords(random, known)
		keep := ""
		if random.IntN(2) == 0 {
			kept := anyWords(random, known)
			m.keep, keep = &kept, kept.expression
		}
		want := []string{}
		for _, tag := range tags {
			if m.deletes(tag, tags) {
				want = append(want, tag.Name)
			}
		}
		slices.Sort(want)
		before := slices.Clone(tags)
		got := names(policy(t, m.remove.expression, keep, m.keepN, span).Select(tags, noon))
		if !slices.Equal(got, want) {
			t.Fatalf("round %d: %q without %q, keep %d, %q, on %v\n got %v\nwant %v", round, m.remove.expression, keep, m.keepN, span, tags, got, want)
		}
		if !slices.Equal(before, tags) {
			t.Fatalf("round %d: the tags of the caller were changed", round)
		}
		deleted, spared = deleted+len(got), spared+len(tags)-len(got)
	}
	if deleted < rounds || spared < rounds {
		t.Errorf("the policies deleted %d tags and spared %d, which is too few to tell", deleted, spared)
	}
}
