package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/forgeplane/forgeplane/test/patience"
	"github.com/forgeplane/forgeplane/test/rest"
	"github.com/forgeplane/forgeplane/test/terminal"
)

// quiet is how long nothing may change after something that changes nothing.
const quiet = 500 * time.Millisecond

// command is one attempt to do something with git.
type command func() (screen string, err error)

// pushOf returns attempts to push a new commit each to a branch as long as they are accepted, and the same commit while they are refused.
func pushOf(clone terminal.Terminal, branch string, options ...string) command {
	accepted, number := true, 0
	return func() (string, error) {
		GinkgoHelper()
		if accepted {
			number++
			clone.Commit("attempt.txt", fmt.Sprintf("%s %d\n", time.Now(), number))
		}
		screen, err := clone.Push(branch, options...)
		accepted = err == nil
		return terminal.Readable(screen), err
	}
}

// expectAccepted expects that a command succeeds soon. It reports the change that allowed the command, and when the
// first command had succeeded.
func expectAccepted(change string, try command) {
	GinkgoHelper()
	changed := time.Now()
	for {
		begun := time.Since(changed)
		screen, err := try()
		if err == nil {
			report(change+": accepted after", time.Since(changed))
			return
		}
		Expect(begun).To(BeNumerically("<", patience.Wait), screen)
	}
}

// expectRefused is the same for a command that must fail, and show each of the words.
func expectRefused(change string, try command, words ...string) {
	GinkgoHelper()
	changed := time.Now()
	for {
		begun := time.Since(changed)
		screen, err := try()
		// If the change happens during a command, git does not show the message of the server.
		if err != nil && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(screen, w) }) {
			report(change+": refused after", time.Since(changed))
			return
		}
		Expect(begun).To(BeNumerically("<", patience.Wait), "%v: %s does not show all of %q", err, screen, words)
	}
}

// expectShown expects that a client soon shows what kubectl has done or seen, and returns it.
func expectShown[T any](client rest.Client, path string, matcher types.GomegaMatcher) (shown T) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		a := client.Call("GET "+path, "")
		g.Expect(a.Status).To(Equal(http.StatusOK), "%s", a)
		shown = *new(T)
		g.Expect(json.Unmarshal([]byte(a.Body), &shown)).To(Succeed())
		g.Expect(shown).To(matcher)
	}).WithPolling(polling).Should(Succeed())
	return shown
}

// report puts a time into the report that Ginkgo makes of the spec.
func report(what string, took time.Duration) {
	AddReportEntry(fmt.Sprintf("%s %s", what, took.Round(time.Millisecond)), ReportEntryVisibilityAlways)
}
