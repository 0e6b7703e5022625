package issues_test

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestTimes_areKeptByReporters(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.create("gus", `{"title":"Broken"}`)
	g.Expect(w.As("gus", "POST "+firstIssue+"/time_estimate", `{"duration":"1h"}`).Code).To(Equal(403), "the author is a Guest")
	g.Expect(w.As("rita", "POST "+firstIssue+"/time_estimate", `{"duration":"3h30m"}`).Code).To(Equal(200))
	const kept = `{"time_estimate":12600,"total_time_spent":28800,"human_time_estimate":"3h 30m","human_total_time_spent":"1d"}`
	g.Expect(w.As("rita", "POST "+firstIssue+"/add_spent_time", `{"duration":"1d"}`).String()).To(Equal("201 " + kept))
	w.done("rita", "PUT "+firstIssue, `{"title":"Still broken"}`)
	g.Expect(w.As("", "GET "+firstIssue+"/time_stats", "").String()).To(Equal("200 " + kept))
	g.Expect(w.As("", "GET "+firstIssue, "").Body).To(ContainSubstring(`"time_stats":` + kept))
	g.Expect(w.As("rita", "POST "+firstIssue+"/reset_time_estimate", "").Body).To(ContainSubstring(`"time_estimate":0,"total_time_spent":28800`))
	g.Expect(w.As("rita", "POST "+firstIssue+"/reset_spent_time", "").Body).To(ContainSubstring(`"total_time_spent":0`))
}
