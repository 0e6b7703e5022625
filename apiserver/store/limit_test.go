package store_test

import (
	"errors"
	"fmt"
	"net/http"
	"syscall"
	"testing"

	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/watermark"
)

func TestAnswerLimit_ofErrorsOfTheWorld(t *testing.T) {
	for err, status := range map[error]int{
		git.ErrNotFound: http.StatusServiceUnavailable, git.ErrNotRepository: http.StatusServiceUnavailable,
		git.ErrStorageMissing: http.StatusServiceUnavailable, git.ErrBusy: http.StatusServiceUnavailable,
		watermark.ErrBehind: http.StatusServiceUnavailable, syscall.ENOSPC: http.StatusInsufficientStorage,
	} {
		answer := store.AnswerLimit(fmt.Errorf("reading: %w", err))
		if answer == nil || answer.Status != status || (answer.Header.Get("Retry-After") != "") != (status == http.StatusServiceUnavailable) {
			t.Errorf("%v is answered %+v, want %d", err, answer, status)
		}
	}
	if answer := store.AnswerLimit(errors.New("a defect")); answer != nil {
		t.Errorf("a defect is answered %+v", answer)
	}
}
