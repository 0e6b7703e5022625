package database

import (
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"
)

// Few is the number of rows up to which SQLite sorts them faster than it finds them among others in the order of a list.
const Few = 1000

// Order is an order of the rows of a table.
type Order struct {
	// Table is the table, and Alias its name in queries.
	Table, Alias string
	// By is the expression by which the rows are sorted. Equal ones are sorted by id, in the same direction.
	By        string
	Ascending bool
	// Last is a condition. Rows that meet it come last in both directions. If it is empty, no rows do.
	Last string
	// Index names the index that has the rows of a project in this order. It must be empty if there is no such index. Sort does not use it for rows of
	// several projects.
	Index string
	// Projects is the number of projects that the rows belong to.
	Projects int
	// FindFirst says that the table has indexes by which few rows are found faster than in this order.
	FindFirst bool
	// Few is the maximum number of rows that count as few.
	Few int
}

// Sort selects the rows of a query in order. total is their number, which SQLite does not know: it is told to go through the index unless they are few.
func (o Order) Sort(db bun.IDB, total int, selected func(bun.IDB) *bun.SelectQuery) *bun.SelectQuery {
	by, table, direction := o.By, o.Table+" AS "+o.Alias, " DESC"
	if o.Ascending {
		direction = " ASC"
	}
	switch indexed := o.Index != "" && o.Projects == 1 && db.Dialect().Name() == dialect.SQLite; {
	case indexed && total > o.Few:
		db, table = rowByRow{db}, table+" INDEXED BY "+o.Index
	case indexed && o.FindFirst:
		by = "+" + by
	}
	q := selected(db).ModelTableExpr(table)
	if o.Last != "" {
		q = q.OrderExpr(o.Last)
	}
	return q.OrderExpr(by + direction).OrderExpr(o.Alias + ".id" + direction)
}

// rowByRow is a database in which a query reads the rows in an order and checks the conditions of each, until it has enough. Conditions that select many
// rows take less time so than if all of the rows are found first.
type rowByRow struct{ bun.IDB }

// IsRowByRow reports whether conditions are checked row by row.
func IsRowByRow(db bun.IDB) bool {
	_, is := db.(rowByRow)
	return is
}
