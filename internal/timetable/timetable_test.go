package timetable_test

import (
	"errors"
	"testing"
	"time"

	"github.com/forgeplane/forgeplane/internal/timetable"
)

var noon = time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)

func TestParse_followsTimeZone(t *testing.T) {
	for _, tt := range []struct{ text, zone, want string }{
		{"0 3 * * *", "", "2026-06-16T03:00:00Z"},
		{"0 3 * * *", "Europe/Berlin", "2026-06-16T01:00:00Z"},
		{"30 12 * * 1", "UTC", "2026-06-15T12:30:00Z"},
		{"@daily", "America/New_York", "2026-06-16T04:00:00Z"},
		{"0 0 1 jan *", "Asia/Tokyo", "2026-12-31T15:00:00Z"},
	} {
		s, err := timetable.Parse(tt.text, tt.zone, noon)
		if err != nil {
			t.Errorf("%+v: %v", tt, err)
		} else if got := s.Next(noon).Format(time.RFC3339); got != tt.want {
			t.Errorf("%+v: got %s", tt, got)
		}
	}
}

func TestNext_handlesSummerTime(t *testing.T) {
	for _, tt := range []struct {
		text, zone, after string
		want              []string
	}{
		// The clock skips from 2:00 to 3:00 on 29 March, and goes back from 3:00 to 2:00 on 25 October.
		{"0 2 * * 0", "Europe/Berlin", "2026-03-28T12:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-04-05T00:00:00Z"}},
		{"30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
		{"0,30 2-3 * * *", "Europe/Berlin", "2026-03-29T00:59:59Z", []string{"2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z", "2026-03-30T00:00:00Z"}},
		{"@hourly", "Europe/Berlin", "2026-03-29T00:30:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"}},
		{"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", []string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		{"30 2 * * *", "Europe/Berlin", "2026-10-25T00:45:00Z", []string{"2026-10-26T01:30:00Z"}},
		{"0 3 * * *", "Europe/Berlin", "2026-10-25T00:45:00Z", []string{"2026-10-25T02:00:00Z"}},
		{"15 * * * *", "Europe/Berlin", "2026-10-24T23:30:00Z", []string{"2026-10-25T00:15:00Z", "2026-10-25T01:15:00Z", "2026-10-25T02:15:00Z"}},
		// The same in the west, at 2:00 on 8 March and 1 November.
		{"30 2 * * *", "America/New_York", "2026-03-07T12:00:00Z", []string{"2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"}},
		{"30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z", []string{"2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"}},
		// The first day of summer time begins at 1:00 where the clock is changed at midnight.
		{"0 0 * * *", "America/Santiago", "2026-09-05T12:00:00Z", []string{"2026-09-06T04:00:00Z", "2026-09-07T03:00:00Z"}},
	} {
		at, err := time.Parse(time.RFC3339, tt.after)
		if err != nil {
			t.Fatal(err)
		}
		s, err := timetable.Parse(tt.text, tt.zone, at)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range tt.want {
			next := s.Next(at)
			if got := next.Format(time.RFC3339); got != want {
				t.Errorf("%+v: got %s, want %s", tt, got, want)
			}
			if !s.Plans(next, at) || !s.Plans(next, next.Add(time.Hour)) {
				t.Errorf("%+v: %s is not planned", tt, want)
			}
			at = next
		}
	}
}

func TestPlans_knowsOtherSchedules(t *testing.T) {
	s, err := timetable.Parse("0 3 * * *", "", noon)
	if err != nil {
		t.Fatal(err)
	}
	three := noon.Add(15 * time.Hour)
	for run, want := range map[time.Time]bool{three: true, three.AddDate(0, 0, -2): true, three.AddDate(0, 0, 1): false, three.Add(time.Minute): false, noon: false} {
		if s.Plans(run, noon) != want {
			t.Errorf("%s: got %t", run, !want)
		}
	}
}

func TestParse_refusesOtherTexts(t *testing.T) {
	for _, text := range []string{"", "0 3 * *", "0 3 * * * *", "60 3 * * *", "0 0 30 2 *", "@every 1s", "TZ=UTC 0 3 * * *", "CRON_TZ=UTC 0 3 * * *", "soon"} {
		if _, err := timetable.Parse(text, "", noon); !errors.Is(err, timetable.ErrSchedule) {
			t.Errorf("%q: the error is %v", text, err)
		}
	}
	for _, zone := range []string{"Local", "local", "Mars/Olympus", "../../etc/passwd", "/etc/localtime"} {
		if _, err := timetable.Parse("@daily", zone, noon); !errors.Is(err, timetable.ErrZone) {
			t.Errorf("%q: the error is %v", zone, err)
		}
	}
}
