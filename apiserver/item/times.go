package item

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// units are the units of durations of work, the longest first: a day has 8 hours, a week 5 days, and a month 4 weeks.
var units = []struct {
	name    string
	seconds int64
}{{"mo", 576000}, {"w", 144000}, {"d", 28800}, {"h", 3600}, {"m", 60}, {"s", 1}}

var (
	duration = regexp.MustCompile(`^\s*(-?)((?:\s*\d{1,6}\s*(?:mo|w|d|h|m|s))+)\s*$`)
	span     = regexp.MustCompile(`(\d+)\s*(mo|w|d|h|m|s)`)
)

// ParseDuration returns the seconds of a duration of work, such as 3h30m or -1d, and whether it is one.
func ParseDuration(text string) (seconds int64, is bool) {
	found := duration.FindStringSubmatch(text)
	if found == nil || len(text) > maxDuration {
		return 0, false
	}
	for _, part := range span.FindAllStringSubmatch(found[2], -1) {
		n, _ := strconv.ParseInt(part[1], 10, 64) // it has few digits
		for _, u := range units {
			if u.name == part[2] {
				seconds += n * u.seconds
			}
		}
	}
	if found[1] != "" {
		seconds = -seconds
	}
	return seconds, true
}

// maxDuration is the maximum length of the text of a duration.
const maxDuration = 100

// Times shows an estimated and a spent time in seconds.
func Times(estimate, spent int64) TimeStats {
	return TimeStats{TimeEstimate: estimate, TotalTimeSpent: spent, HumanTimeEstimate: human(estimate), HumanTotalTimeSpent: human(spent)}
}

// human returns a time as people write it, or nil for none.
func human(seconds int64) *string {
	if seconds == 0 {
		return nil
	}
	sign := ""
	if seconds < 0 {
		sign, seconds = "-", -seconds
	}
	var parts []string
	for _, u := range units {
		if n := seconds / u.seconds; n > 0 {
			parts = append(parts, fmt.Sprintf("%d%s", n, u.name))
		}
		seconds %= u.seconds
	}
	text := sign + strings.Join(parts, " ")
	return &text
}
