package repositories_test

import (
	"testing"

	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	. "github.com/forgeplane/forgeplane/apiserver/v4/repositories"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// shop is a familytest.Shop whose project web has the refs of client.
type shop struct {
	*familytest.Shop

	client *gittest.Client
}

func newShop(t *testing.T, c *gittest.Client) *shop {
	t.Helper()
	s := &shop{Shop: familytest.NewShop(t, c, familytest.User("dora", 3)), client: c}
	s.serve(s.Repositories)
	return s
}

func (s *shop) serve(r *repository.Repositories) {
	s.Repositories = r
	s.Serve(New(s.Kit).With(&brought{}).Table())
}

type asks = familytest.Asks
