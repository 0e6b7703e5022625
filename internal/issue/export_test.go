package issue

import "testing"

// Few makes lists take more issues for many until the test ends.
func Few(t testing.TB, n int) {
	was := few
	few = n
	t.Cleanup(func() { few = was })
}
