package database_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/internal/database"
)

func TestBackup_copiesDatabaseThatIsInUse(t *testing.T) {
	g := NewWithT(t)
	from, to := filepath.Join(t.TempDir(), "a b.db"), filepath.Join(t.TempDir(), "copy.db")
	db := open(t, from)
	g.Expect(write(t.Context(), db, "before")).To(Succeed())
	g.Expect(db.Atomically(t.Context(), "writing", func(ctx context.Context, _ bun.IDB) error {
		if err := write(ctx, db, "meanwhile"); err != nil {
			return err
		}
		return database.Backup(ctx, from, to)
	})).To(Succeed())
	info, err := os.Stat(to)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode()).To(Equal(fs.FileMode(0o600)))
	expectNotes(t, open(t, to), "before")
	expectNotes(t, db, "before", "meanwhile")
}

func TestBackup_replacesNothing(t *testing.T) {
	g := NewWithT(t)
	from := filepath.Join(t.TempDir(), "activity.db")
	open(t, from)
	to := filepath.Join(t.TempDir(), "activity.db")
	g.Expect(os.WriteFile(to, []byte("precious"), 0o600)).To(Succeed())
	g.Expect(database.Backup(t.Context(), from, to)).To(MatchError(fs.ErrExist))
	g.Expect(os.ReadFile(to)).To(Equal([]byte("precious")))
	missing := filepath.Join(t.TempDir(), "missing.db")
	g.Expect(database.Backup(t.Context(), missing, missing+".copy")).To(MatchError(fs.ErrNotExist))
	g.Expect(missing + ".copy").NotTo(BeAnExistingFile())
}
