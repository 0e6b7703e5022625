package familytest

import (
	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
)

// UserRow returns a user in the form of rows.
func (f *Forge) UserRow(username string) database.User {
	f.t.Helper()
	u, err := f.Catalog.UserByUsername(f.t.Context(), username)
	if err != nil {
		f.t.Fatal(err)
	}
	return database.User{ID: u.RESTID(), UID: u.UID}
}

// ProjectRow returns a project in the form of rows.
func (f *Forge) ProjectRow(id int64) database.Subject {
	f.t.Helper()
	p, err := catalog.ByID[*v1alpha1.Project](f.t.Context(), f.Catalog, id)
	if err != nil {
		f.t.Fatal(err)
	}
	return database.Subject{Kind: database.KindProject, ID: id, UID: p.UID}
}
