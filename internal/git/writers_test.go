package git_test

import (
	"context"
	"errors"
	"testing"

	"github.com/forgeplane/forgeplane/internal/git"
)

func TestWriters(t *testing.T) {
	e := newEngine(t)
	one, other := repository(t, e, "/s", "1.git"), repository(t, e, "/s", "2.git")
	var w git.Writers
	begin := func(r *git.Repository) func() {
		t.Helper()
		end, err := w.Begin(r)
		if err != nil {
			t.Fatal(err)
		}
		return end
	}

	first, second := begin(one), begin(one)
	first()
	first() // counts once

	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Close(impatient, one); !errors.Is(err, context.Canceled) {
		t.Errorf("closing while a change runs: %v", err)
	}
	third := begin(one) // a Close that failed has no effect

	closed := make(chan error)
	go func() { closed <- w.Close(t.Context(), one) }()
	eventually(t, "the repository takes no more changes", func() bool { return w.Closed(one) })
	if _, err := w.Begin(one); !errors.Is(err, git.ErrClosed) {
		t.Errorf("a change of a closed repository: %v", err)
	}
	if err := w.Close(t.Context(), one); !errors.Is(err, git.ErrClosed) {
		t.Errorf("closing twice: %v", err)
	}
	begin(other)()
	second()
	select {
	case err := <-closed:
		t.Fatalf("closed while a change runs: %v", err)
	default:
	}
	third()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	w.Open(one)
	begin(one)()
	if err := w.Close(t.Context(), one); err != nil {
		t.Errorf("closing an idle one: %v", err)
	}
}

func TestAChangeThatYieldsEndsWhenItsRepositoryIsClosed(t *testing.T) {
	e := newEngine(t)
	r := repository(t, e, "/s", "1.git")
	var w git.Writers
	_, done, err := w.BeginYielding(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	done()
	yielding, end, err := w.BeginYielding(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan error)
	go func() { closed <- w.Close(t.Context(), r) }()
	<-yielding.Done()
	if err := context.Cause(yielding); !errors.Is(err, git.ErrClosed) {
		t.Errorf("got %v", err)
	}
	select {
	case err := <-closed:
		t.Fatalf("closed while a change runs: %v", err)
	default:
	}
	end()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if _, _, err := w.BeginYielding(t.Context(), r); !errors.Is(err, git.ErrClosed) {
		t.Errorf("a change of a closed repository: %v", err)
	}
}
