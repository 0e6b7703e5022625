package store_test

import (
	"errors"
	"fmt"
	"net/http"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/watermark"
)

func TestAnswerLimit_ofErrorsOfTheWorld(t *testing.T) {
	g := NewWithT(t)
	for err, status := range map[error]int{
		git.ErrNotFound: http.StatusServiceUnavailable, git.ErrNotRepository: http.StatusServiceUnavailable,
		git.ErrStorageMissing: http.StatusServiceUnavailable, git.ErrBusy: http.StatusServiceUnavailable,
		watermark.ErrBehind: http.StatusServiceUnavailable, syscall.ENOSPC: http.StatusInsufficientStorage,
	} {
		answer := store.AnswerLimit(fmt.Errorf("reading: %w", err))
		g.Expect(answer).NotTo(BeNil(), "%v", err)
		g.Expect(answer.Status).To(Equal(status), "%v", err)
		g.Expect(answer.Header.Get("Retry-After") != "").To(Equal(status == http.StatusServiceUnavailable), "%v", err)
	}
	g.Expect(store.AnswerLimit(errors.New("a defect"))).To(BeNil())
}
