package database

import (
	"context"
	"database/sql/driver"
)

const (
	// maxPrepared is the maximum number of statements that a connection keeps prepared.
	maxPrepared = 128
	// maxPreparedText is the maximum length of their texts.
	maxPreparedText = 8 << 10
)

// preparing opens connections to SQLite that keep statements prepared. The query builder puts values into the text of a statement, and SQLite takes longer
// to compile most texts than to run them. The connections take the values out again.
type preparing struct{ driver.Connector }

// Connect implements driver.Connector.
func (p preparing) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := p.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &preparingConn{sqliteConn: c.(sqliteConn), idle: map[string]sqliteStatement{}}, nil
}

// sqliteConn and sqliteStatement are what the driver implements.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

type sqliteStatement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// preparingConn is a connection with its prepared statements. Like every connection of database/sql, it is used by one goroutine at a time.
type preparingConn struct {
	sqliteConn

	// idle has the statements that are not in use, by their texts.
	idle map[string]sqliteStatement
}

// prepared is a statement in use, with the values to run it with.
type prepared struct {
	sqliteStatement

	text   string
	values []driver.NamedValue
}

// ExecContext implements driver.ExecerContext.
func (c *preparingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	s, ok := c.prepare(ctx, query, args)
	if !ok {
		return c.sqliteConn.ExecContext(ctx, query, args)
	}
	result, err := s.ExecContext(ctx, s.values)
	c.keep(s, err)
	return result, err
}

// QueryContext implements driver.QueryerContext.
func (c *preparingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	s, ok := c.prepare(ctx, query, args)
	if !ok {
		return c.sqliteConn.QueryContext(ctx, query, args)
	}
	rows, err := s.QueryContext(ctx, s.values)
	if err != nil {
		c.keep(s, err)
		return nil, err
	}
	return &preparedRows{Rows: rows, closed: func(err error) { c.keep(s, err) }}, nil
}

// Close implements driver.Conn.
func (c *preparingConn) Close() error {
	for _, s := range c.idle {
		_ = s.Close() // only the end of the connection counts
	}
	return c.sqliteConn.Close()
}

// prepare returns the prepared statement for a query. It returns false for queries that must run as they are.
func (c *preparingConn) prepare(ctx context.Context, query string, args []driver.NamedValue) (*prepared, bool) {
	if len(args) > 0 || len(query) > maxPreparedText {
		return nil, false
	}
	text, values, ok := takeValues(query)
	if !ok {
		return nil, false
	}
	s, ok := c.idle[text]
	if ok {
		delete(c.idle, text)
	} else {
		made, err := c.PrepareContext(ctx, text)
		if err != nil { // the query itself gives the right error, or works
			return nil, false
		}
		s = made.(sqliteStatement)
	}
	return &prepared{s, text, values}, true
}

// keep keeps a statement for the next time, unless it has failed. If there is no room, any other one makes room.
func (c *preparingConn) keep(s *prepared, err error) {
	if _, twice := c.idle[s.text]; err != nil || twice {
		_ = s.Close() // it repeats the error of the last run
		return
	}
	if len(c.idle) == maxPrepared {
		for text, other := range c.idle {
			delete(c.idle, text)
			_ = other.Close()
			break
		}
	}
	c.idle[s.text] = s.sqliteStatement
}

// preparedRows are the rows of a prepared statement.
type preparedRows struct {
	driver.Rows

	closed func(error)
}

// Close implements driver.Rows.
func (r *preparedRows) Close() error {
	err := r.Rows.Close()
	r.closed(err)
	return err
}
