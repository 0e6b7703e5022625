package milestone

import "github.com/uptrace/bun"

// Titled returns the query for the ids of the milestones with a title, for use in another query.
func Titled(db bun.IDB, title string) *bun.SelectQuery {
	return db.NewSelect().Model((*Milestone)(nil)).Column("id").Where("title = ?", title)
}
