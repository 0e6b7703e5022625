package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/apiserver/activity"
	"github.com/forgeplane/forgeplane/apiserver/aggregated"
	"github.com/forgeplane/forgeplane/internal/registration"
	"github.com/forgeplane/forgeplane/test/rights"
)

// uninstalled has the names of the APIServices that the chart removes.
var uninstalled = regexp.MustCompile(`resources: \[apiservices\]\n +resourceNames: \[(.*)\]`)

func TestGroups_areServed(t *testing.T) {
	NewWithT(t).Expect(registration.Groups()).To(ConsistOf(aggregated.Served(virtualGroups(activity.Options{})...)))
}

func TestGroups_matchTheRoles(t *testing.T) {
	g := NewWithT(t)
	var names []string
	for _, group := range registration.Groups() {
		names = append(names, registration.APIService(group))
	}

	granted, err := rights.Granted(filepath.Join("..", "..", "config", "rbac", "role.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	named := map[string][]string{}
	for _, r := range granted {
		if r.Resource != "apiservices" {
			continue
		}
		named[r.Role+" "+r.Verb] = append(named[r.Role+" "+r.Verb], r.Name)
		if r.Role == "forgeplane-manager" {
			g.Expect(rights.OfSurvivors()).To(ContainElement(r.String()))
		}
	}
	g.Expect(named).To(And(HaveKey("forgeplane-apiserver create"), HaveKey("forgeplane-manager delete"), HaveEach(ConsistOf(names))))

	chart, err := os.ReadFile(filepath.Join("..", "..", "charts", "forgeplane", "templates", "uninstall.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	rule := uninstalled.FindSubmatch(chart)
	g.Expect(rule).To(HaveLen(2))
	g.Expect(strings.Split(string(rule[1]), ", ")).To(ConsistOf(names))
}
