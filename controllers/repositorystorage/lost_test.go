package repositorystorage

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/git"
)

func TestChanged_wakesProjectsThatSaySomethingElse(t *testing.T) {
	for name, tt := range map[string]struct {
		reason string
		there  error
		wakes  bool
	}{
		"ready, and there":                        {v1alpha1.ReasonReady, nil, false},
		"ready, and gone":                         {v1alpha1.ReasonReady, git.ErrNotFound, true},
		"ready, and not mounted":                  {v1alpha1.ReasonReady, git.ErrStorageMissing, true},
		"not ready for another reason, and there": {v1alpha1.ReasonReferenceNotFound, nil, false},
		"not ready for another reason, and gone":  {v1alpha1.ReasonReferenceNotFound, git.ErrNotFound, true},
		"already said to be gone":                 {v1alpha1.ReasonStorageUnavailable, git.ErrNotFound, false},
		"said to be gone, and there again":        {v1alpha1.ReasonStorageUnavailable, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha1.Project{}
			p.Status.RefsChecksum = "1"
			p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Reason: tt.reason}}
			NewWithT(t).Expect(changed(p, tt.there)).To(Equal(tt.wakes))
		})
	}
}
