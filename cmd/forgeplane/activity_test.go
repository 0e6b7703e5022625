package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/subscription"
)

const databaseURL = "postgres://forgeplane:hush@db.example/forgeplane"

func fileOf(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "url")
	NewWithT(t).Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
	return path
}

func TestActivity_isAFileUnlessAURLIsGiven(t *testing.T) {
	file := fileOf(t, databaseURL+"\n")
	for name, c := range map[string]struct {
		variable string
		args     []string
		want     string
	}{
		"by default":                               {want: "/var/lib/forgeplane/activity.db"},
		"a file":                                   {args: []string{"--activity-database=here.db"}, want: "here.db"},
		"the variable overrides a file":            {variable: databaseURL, args: []string{"--activity-database=here.db"}, want: databaseURL},
		"a file with a URL and a line end":         {args: []string{"--activity-database-file=" + file}, want: databaseURL},
		"a file with a URL overrides the variable": {variable: "postgresql://other", args: []string{"--activity-database-file=" + file}, want: databaseURL},
		"several processes":                        {args: []string{"--leader-elect", "--activity-database-file=" + file}, want: databaseURL},
		"several processes in development":         {args: []string{"--leader-elect", "--development", "--activity-database=here.db"}, want: "here.db"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(activityEnv, c.variable)
			NewWithT(t).Expect(parse(t, c.args...).activityName()).To(Equal(c.want))
		})
	}
}

func TestActivity_isValidatedWithoutShowingThePassword(t *testing.T) {
	for name, c := range map[string]struct {
		variable string
		args     []string
		want     string
	}{
		"a URL among the arguments":      {args: []string{"--activity-database=" + databaseURL}, want: "--activity-database-file"},
		"a variable without a URL":       {variable: "forgeplane:hush@db.example", want: activityEnv},
		"a file without a URL":           {args: []string{"--activity-database-file=" + fileOf(t, "hush")}, want: "--activity-database-file"},
		"an empty file":                  {args: []string{"--activity-database-file=" + fileOf(t, "\n")}, want: "--activity-database-file"},
		"a missing file":                 {args: []string{"--activity-database-file=" + filepath.Join(t.TempDir(), "none")}, want: "--activity-database-file"},
		"several processes and one file": {args: []string{"--leader-elect"}, want: "PostgreSQL"},
		"an empty flag":                  {args: []string{"--activity-database="}, want: "--activity-database"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(activityEnv, c.variable)
			NewWithT(t).Expect(parse(t, c.args...).validate()).To(MatchError(And(ContainSubstring(c.want), Not(ContainSubstring("hush")))))
		})
	}
}

func TestActivity_mustBePostgreSQLForSeparateProcesses(t *testing.T) {
	for _, p := range []parts{{controllers: true}, {server: true}} {
		g := NewWithT(t)
		o := defaults(p)
		o.bind(pflag.NewFlagSet("forgeplane", pflag.ContinueOnError), p)
		t.Setenv(activityEnv, "")
		g.Expect(o.validate()).To(MatchError(ContainSubstring("PostgreSQL")))
		t.Setenv(activityEnv, databaseURL)
		g.Expect(o.validate()).To(Succeed())
	}
}

func TestActivityReachable_logsWhyTheDatabaseDoesNotAnswer(t *testing.T) {
	g := NewWithT(t)
	var log []string
	db, err := database.Open(t.Context(), filepath.Join(t.TempDir(), "activity.db"), subscription.Migrations())
	g.Expect(err).NotTo(HaveOccurred())
	check := activityReachable(db, funcr.New(func(_, args string) { log = append(log, args) }, funcr.Options{}))
	request := httptest.NewRequest(http.MethodGet, "/readyz", http.NoBody)
	g.Expect(check(request)).To(Succeed())
	gone, giveUp := context.WithCancel(t.Context())
	giveUp()
	g.Expect(check(request.WithContext(gone))).To(Succeed())
	g.Expect(log).To(BeEmpty())
	g.Expect(db.Close()).To(Succeed())
	g.Expect(check(request)).To(MatchError(ContainSubstring("activity.db")))
	g.Expect(log).To(ConsistOf(ContainSubstring("activity.db")))
}

func TestReadiness_needsAllChecks(t *testing.T) {
	g := NewWithT(t)
	db, err := database.Open(t.Context(), filepath.Join(t.TempDir(), "activity.db"), subscription.Migrations())
	g.Expect(err).NotTo(HaveOccurred())
	ready := all(func(*http.Request) error { return nil }, activityReachable(db, logr.Discard()))
	request := httptest.NewRequest(http.MethodGet, "/readyz", http.NoBody)
	g.Expect(ready(request)).To(Succeed())
	g.Expect(db.Close()).To(Succeed())
	g.Expect(ready(request)).To(MatchError(ContainSubstring("activity.db")))
}
