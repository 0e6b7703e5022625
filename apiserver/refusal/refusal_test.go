package refusal_test

import (
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/refusal"
	"github.com/forgeplane/forgeplane/internal/declare"
)

func TestWhatIsNotWrittenIsExplained(t *testing.T) {
	g := NewWithT(t)
	for status, err := range map[int]error{
		422: &declare.InvalidError{Reason: "spec.path: too long"}, 403: &declare.RefusedError{}, 404: fmt.Errorf("updating: %w", declare.ErrGone),
		409: declare.ErrContended, 412: declare.ErrChanged,
	} {
		var answer *endpoint.Error
		g.Expect(errors.As(refusal.Of(err, "Group"), &answer)).To(BeTrue())
		g.Expect(answer.Status).To(Equal(status))
	}
	other := errors.New("the API server is not there")
	g.Expect(refusal.Of(other, "Group")).To(BeIdenticalTo(other))
	g.Expect(refusal.Of(nil, "Group")).To(Succeed())
}
