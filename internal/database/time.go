package database

import "time"

// Time returns a time, or the nearest time that both engines can store.
func Time(at time.Time) time.Time {
	first, last := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
	switch at = at.UTC(); {
	case at.Before(first):
		return first
	case at.After(last):
		return last
	default:
		return at
	}
}
