package pipeline

import (
	"strings"
	"testing"
)

// parse returns the outcomes that a text lists.
func parse(text string) outcomes {
	all := outcomes{}
	for _, one := range strings.Fields(text) {
		all[outcome(one)] = true
	}
	return all
}

func TestOutcomes_giveStatus(t *testing.T) {
	for text, want := range map[string]Status{
		"": Success, "success": Success, "success skipped success_with_warnings": Success, "ignored success": Success,
		"ignored": Skipped, "skipped ignored": Skipped, "skipped": Skipped,
		"created": Created, "created ignored": Created, "created success": Running, "created skipped": Pending,
		"canceled": Canceled, "canceled success skipped": Canceled, "canceled failed": Failed,
		"pending": Pending, "pending created": Pending, "pending created skipped": Pending, "pending success": Running, "pending failed": Running,
		"running": Running, "running failed manual": Running, "running scheduled": Running,
		"manual": Manual, "manual created": Manual, "manual success": Manual, "manual failed": Manual, "manual scheduled": Manual,
		"waiting_for_resource": WaitingForResource, "waiting_for_resource manual": WaitingForResource, "waiting_for_resource pending": Running,
		"scheduled": Scheduled, "scheduled created success": Scheduled,
		"failed": Failed, "failed success": Failed, "failed skipped": Failed, "success_with_warnings failed": Failed, "failed created": Running,
	} {
		if got := parse(text).status(); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

func TestOutcomes_ofNeededJobs(t *testing.T) {
	for text, want := range map[string]Status{
		"": Success, "success": Success, "success success_with_warnings": Success, "success skipped": Skipped, "failed skipped": Skipped,
		"success running": Created, "success manual": Created, "success ignored": Created, "created": Created, "failed success": Failed, "canceled": Canceled,
	} {
		if got := parse(text).needed(); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

func TestCanBecome_endsWhereNothingFollows(t *testing.T) {
	for _, from := range []Status{Success, Failed, Canceled} {
		for to := range transitions {
			if from.CanBecome(to) {
				t.Errorf("%s can become %s", from, to)
			}
		}
	}
	for from, all := range transitions {
		for _, to := range all {
			if _, known := transitions[to]; !known && !to.Ended() {
				t.Errorf("%s can become %s, and is stuck there", from, to)
			}
		}
	}
}
