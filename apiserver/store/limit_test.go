package store_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/blob"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/iid"
	"github.com/forgeplane/forgeplane/internal/watermark"
)

func TestAnswerLimit_ofErrorsOfTheWorld(t *testing.T) {
	for err, status := range map[error]int{
		git.ErrNotFound: http.StatusServiceUnavailable, git.ErrNotRepository: http.StatusServiceUnavailable,
		git.ErrStorageMissing: http.StatusServiceUnavailable, git.ErrBusy: http.StatusServiceUnavailable,
		watermark.ErrBehind: http.StatusServiceUnavailable, iid.ErrMoved: http.StatusServiceUnavailable, syscall.ENOSPC: http.StatusInsufficientStorage,
	} {
		answer := store.AnswerLimit(fmt.Errorf("reading: %w", err))
		if answer == nil || answer.Status != status || (answer.Header.Get("Retry-After") != "") != (status == http.StatusServiceUnavailable) {
			t.Errorf("%v is answered %+v, want %d", err, answer, status)
		}
	}
	for place, want := range map[error]string{
		nil: "storage of the repository", git.ErrScratch: "space left for temporary files", endpoint.ErrSpool: "space left for temporary files",
		blob.ErrWrite: "storage of avatars",
	} {
		err := error(syscall.ENOSPC)
		if place != nil {
			err = fmt.Errorf("%w: %w", place, err)
		}
		answer := store.AnswerLimit(fmt.Errorf("writing: %w", err))
		if answer == nil || answer.Status != http.StatusInsufficientStorage || !strings.Contains(answer.Text(), want) {
			t.Errorf("%v is answered %v", err, answer)
		}
	}
	if answer := store.AnswerLimit(errors.New("a defect")); answer != nil {
		t.Errorf("a defect is answered %+v", answer)
	}
}
