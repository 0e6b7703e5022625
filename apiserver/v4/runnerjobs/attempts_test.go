package runnerjobs

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
)

func TestAttempts_excludeOneAnother(t *testing.T) {
	g := NewWithT(t)
	a := attempts{of: map[int64]chan struct{}{}}
	end, err := a.begin(t.Context(), 1, false)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(a.begin(t.Context(), 1, false)).To(BeNil())
	other, err := a.begin(t.Context(), 2, false)
	g.Expect(err).NotTo(HaveOccurred())
	other()

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = a.begin(ctx, 1, true)
	g.Expect(err).To(MatchError(context.Canceled))
	begun := make(chan func())
	go func() {
		end, _ := a.begin(t.Context(), 1, true)
		begun <- end
	}()
	g.Consistently(begun, "50ms").ShouldNot(Receive())
	end()
	(<-begun)()
	g.Expect(a.of).To(BeEmpty())
}
