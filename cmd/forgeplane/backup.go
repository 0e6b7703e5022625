package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/forgeplane/forgeplane/internal/database"
)

// backupCommand returns the command that copies the activity database.
func backupCommand() *cobra.Command {
	o := defaults(parts{})
	cmd := &cobra.Command{
		Use: "backup FILE", Short: "Copy the activity database to a file while Forgeplane runs", Args: cobra.ExactArgs(1),
		Long: `Copy the SQLite file of the activity database, as it is at one moment, to a new file, or to the standard output if FILE is "-".
Forgeplane can run meanwhile. PostgreSQL has commands of its own, such as pg_dump.`,
		Example: `  forgeplane backup --activity-database=/var/lib/forgeplane/activity.db /backup/activity.db
  kubectl exec deployment/forgeplane-all -- forgeplane backup --activity-database=/var/lib/forgeplane/activity/activity.db - > activity.db`,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := o.activityDatabase.name(true)
			switch {
			case err != nil:
				return err
			case database.IsPostgres(name):
				return errors.New("the activity database is in PostgreSQL: back it up with pg_dump, for example")
			case args[0] == "-":
				return printBackup(cmd.Context(), name, cmd.OutOrStdout())
			default:
				return database.Backup(cmd.Context(), name, args[0])
			}
		},
	}
	o.activityDatabase.bind(cmd.Flags())
	return cmd
}

// printBackup writes a copy of a SQLite file to w. The copy is first in a directory beside the file, which has the space.
func printBackup(ctx context.Context, path string, w io.Writer) error {
	directory, err := os.MkdirTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return fmt.Errorf("creating a directory for the backup: %w", err)
	}
	defer os.RemoveAll(directory)
	name := filepath.Join(directory, "activity.db")
	if err := database.Backup(ctx, path, name); err != nil {
		return err
	}
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(w, file)
	return err
}
