package mergerequest

import (
	"hash/fnv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// FirstProjectRule is the lowest id of approval rules of projects. The ids of other rules are below it.
const FirstProjectRule = 1 << 51

// ProjectRuleIDs returns the ids of the approval rules of a project: the declared ones, and for other rules ids that follow from the project and
// their names.
func ProjectRuleIDs(project types.UID, rules []v1alpha1.ApprovalRule) []int64 {
	taken := map[int64]bool{}
	for _, r := range rules {
		taken[r.ID] = true
	}
	ids := make([]int64, len(rules))
	for n, r := range rules {
		id := r.ID
		if id == 0 {
			for id = derived(string(project) + "/" + r.Name); taken[id]; id = FirstProjectRule + (id+1)%FirstProjectRule {
			}
			taken[id] = true
		}
		ids[n] = id
	}
	return ids
}

func derived(name string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // it never fails
	return FirstProjectRule + int64(h.Sum64()%FirstProjectRule)
}
