package store

import (
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/declare"
)

func TestAnswer_returnsStatusOfFailedWrites(t *testing.T) {
	g := NewWithT(t)
	for status, err := range map[int]error{
		422: &declare.InvalidError{Reason: "spec.path: too long"}, 403: &refusedError{}, 404: fmt.Errorf("updating: %w", declare.ErrGone),
		409: declare.ErrContended, 412: declare.ErrChanged,
	} {
		var said *endpoint.Error
		g.Expect(errors.As(answer(err, "Group"), &said)).To(BeTrue())
		g.Expect(said.Status).To(Equal(status))
	}
	other := errors.New("the API server is not there")
	g.Expect(answer(other, "Group")).To(BeIdenticalTo(other))
	g.Expect(answer(nil, "Group")).To(Succeed())
}
