package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/subscription"
)

func TestBackup_writesFileOrStandardOutput(t *testing.T) {
	g := NewWithT(t)
	t.Setenv(activityEnv, "")
	path := filepath.Join(t.TempDir(), "activity.db")
	db, err := database.Open(t.Context(), path, subscription.Migrations())
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = db.Close() })
	backup := func(to string) ([]byte, error) {
		var out bytes.Buffer
		cmd := backupCommand()
		cmd.SetOut(&out)
		cmd.SetArgs([]string{"--activity-database=" + path, to})
		err := cmd.ExecuteContext(t.Context())
		return out.Bytes(), err
	}
	to := filepath.Join(t.TempDir(), "copy.db")
	g.Expect(backup(to)).To(BeEmpty())
	copied, err := os.ReadFile(to)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(backup("-")).To(Equal(copied))
	g.Expect(filepath.Glob(filepath.Join(filepath.Dir(path), ".new-*"))).To(BeEmpty())

	t.Setenv(activityEnv, databaseURL)
	_, err = backup(to + ".other")
	g.Expect(err).To(MatchError(ContainSubstring("pg_dump")))
}
