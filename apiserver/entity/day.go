package entity

import (
	"time"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

// Day shows a day that is stored in the form of time.DateOnly; empty is null.
func Day(stored string) endpoint.Date {
	day, err := time.Parse(time.DateOnly, stored)
	if err != nil {
		return endpoint.Date{}
	}
	return endpoint.Date(day)
}

// StoreDay returns the form in which a day that was sent is stored: empty for null, and what was stored before if none was sent.
func StoreDay(sent endpoint.Optional[time.Time], before string) string {
	switch {
	case !sent.Set:
		return before
	case sent.Null:
		return ""
	default:
		return sent.Value.Format(time.DateOnly)
	}
}
