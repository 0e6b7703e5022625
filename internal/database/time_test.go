package database_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/database"
)

func TestTime_isOneThatBothEnginesStore(t *testing.T) {
	day := func(year int) time.Time { return time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC) }
	for at, want := range map[time.Time]time.Time{
		day(0): day(1), day(2026): day(2026), day(10000): time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC),
		time.Date(1, 1, 1, 0, 0, 0, 0, time.FixedZone("east", 3600)): day(1),
	} {
		NewWithT(t).Expect(database.Time(at)).To(Equal(want), at.String())
	}
}
