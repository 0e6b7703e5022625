package groups_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	. "github.com/forgeplane/forgeplane/apiserver/v4/groups"
)

// TestKeysetPages_haveEachGroupOnce follows the links from page to page, in every order.
func TestKeysetPages_haveEachGroupOnce(t *testing.T) {
	for _, order := range []string{
		"order_by=name&sort=asc", "order_by=name&sort=desc", "order_by=path&sort=asc", "order_by=id&sort=desc",
	} {
		t.Run(order, func(t *testing.T) {
			f := newForge(t)
			all := f.As("root", "GET /groups?"+order, "")
			var want, got []string
			for _, g := range familytest.Decode[[]Group](t, all) {
				want = append(want, g.FullPath)
			}
			for next := "/groups?pagination=keyset&per_page=1&" + order; next != ""; {
				page := f.As("root", "GET "+next, "")
				for _, g := range familytest.Decode[[]Group](t, page) {
					got = append(got, g.FullPath)
				}
				if page.Header.Get("X-Total") != "" {
					t.Error("a page by keyset tells the total")
				}
				next = ""
				if link, _, ok := strings.Cut(strings.TrimPrefix(page.Header.Get("Link"), "<"), `>; rel="next"`); ok {
					u, err := url.Parse(link)
					if err != nil {
						t.Fatal(err)
					}
					next = "/groups?" + u.RawQuery
				}
			}
			if strings.Join(got, " ") != strings.Join(want, " ") || len(want) != 3 {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	if got := newForge(t).As("root", "GET /groups?pagination=keyset&cursor=nonsense!", ""); got.String() != `400 {"error":"cursor is invalid"}` {
		t.Errorf("got %s", got)
	}
}
