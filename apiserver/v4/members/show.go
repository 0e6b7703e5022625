package members

import (
	"time"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// Member is a member of a project or group.
type Member struct {
	entity.UserSummary
	AccessLevel     int                 `json:"access_level" doc:"10 Guest, 20 Reporter, 30 Developer, 40 Maintainer, 50 Owner."`
	CreatedAt       endpoint.Time       `json:"created_at"`
	CreatedBy       *entity.UserSummary `json:"created_by"`
	ExpiresAt       endpoint.Date       `json:"expires_at"`
	MembershipState string              `json:"membership_state" doc:"Always active."`
}

func (f *Family) show(m catalog.Member) Member {
	shown := Member{
		UserSummary: entity.SummarizeUser(m.User, f.WebURL), AccessLevel: int(m.Role()),
		CreatedAt: endpoint.Time(m.Membership.CreationTimestamp.Time), MembershipState: "active",
	}
	if ends := m.Ends(); !ends.IsZero() {
		shown.ExpiresAt = endpoint.Date(ends.UTC())
	}
	return shown
}

// day is the start of a day. A membership that expires on a day ends at its start.
func day(t time.Time) time.Time {
	year, month, d := t.Date()
	return time.Date(year, month, d, 0, 0, 0, 0, time.UTC)
}
