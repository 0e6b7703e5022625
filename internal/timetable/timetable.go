// Package timetable reads schedules in the syntax of cron.
package timetable

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // the image of Forgeplane need not have the time zones

	"github.com/robfig/cron/v3" // the parser of CronJobs
)

// Schedule says when something begins.
type Schedule struct {
	cron *cron.SpecSchedule
	zone *time.Location
	// hourly says that the schedule comes in every hour.
	hourly bool
}

// everyHour are the bits of the hours of a day.
const everyHour = 1<<24 - 1

// Errors of Parse.
var (
	// ErrSchedule says that a schedule is malformed, or never comes.
	ErrSchedule = errors.New(`it must have the five fields of cron, as in "0 3 * * 0", or be @hourly, @daily, @weekly, @monthly or @yearly`)
	// ErrZone says that a time zone is not known.
	ErrZone = errors.New("it must be a time zone of the IANA database, as in Europe/Berlin")
)

// Parse returns a schedule in the syntax of cron, in a time zone of the IANA database, or in UTC if it is empty. The error is ErrSchedule
// or ErrZone.
func Parse(text, zone string, now time.Time) (*Schedule, error) {
	if strings.EqualFold(zone, "local") {
		return nil, ErrZone
	}
	location, err := time.LoadLocation(zone)
	if err != nil {
		return nil, ErrZone
	}
	// A zone within the text, and intervals that begin with the process, have no place in a declaration.
	if strings.Contains(text, "TZ=") || strings.HasPrefix(strings.TrimSpace(text), "@every") {
		return nil, ErrSchedule
	}
	parsed, err := cron.ParseStandard(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSchedule, err)
	}
	fields, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, ErrSchedule
	}
	s := &Schedule{fields, location, fields.Hour&everyHour == everyHour}
	if s.Next(now).IsZero() {
		return nil, fmt.Errorf("%w: this one never comes", ErrSchedule)
	}
	return s, nil
}

// Next returns the first time of the schedule after a time; the zero time if the schedule does not come within five years. A time of the clock
// that does not exist, because summer time begins, stands for the beginning of summer time. If summer time ends and the clock shows a time
// twice, the first time counts, unless the schedule comes in every hour.
func (s *Schedule) Next(after time.Time) time.Time {
	if s.hourly {
		if next := s.cron.Next(after.In(s.zone)); !next.IsZero() {
			return next.UTC()
		}
		return time.Time{}
	}
	// A clock without summer time, as if its zone were UTC.
	local := after.In(s.zone)
	clock := time.Date(local.Year(), local.Month(), local.Day(), local.Hour(), local.Minute(), local.Second(), 0, time.UTC)
	for {
		if clock = s.cron.Next(clock); clock.IsZero() {
			return clock
		}
		if next := s.at(clock); next.After(after) {
			return next
		}
	}
}

// at returns when a clock in the zone first shows a time, or when it skips it.
func (s *Schedule) at(clock time.Time) time.Time {
	// A day before, the clock has not changed yet if it changes at about this time.
	before := clock.Add(-24 * time.Hour).In(s.zone)
	_, offset := before.Zone()
	_, change := before.ZoneBounds()
	at := clock.Add(-time.Duration(offset) * time.Second)
	if change.IsZero() || at.Before(change) {
		return at
	}
	_, offset = change.In(s.zone).Zone()
	if at = clock.Add(-time.Duration(offset) * time.Second); at.Before(change) {
		return change.UTC()
	}
	return at
}

// Plans reports whether a run of the schedule is due at a time, which is either in the past or the next time of the schedule.
func (s *Schedule) Plans(run, now time.Time) bool {
	return s.Next(run.Add(-time.Second)).Equal(run) && !run.After(s.Next(now))
}
