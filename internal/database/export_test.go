package database

import "database/sql/driver"

// SQLiteConn is a connection of the driver for SQLite.
type SQLiteConn = sqliteConn

// MaxPrepared is the maximum number of statements that a connection keeps prepared.
const MaxPrepared = maxPrepared

// Preparing returns a connector whose connections keep statements prepared.
func Preparing(c driver.Connector) driver.Connector { return preparing{c} }

// TakeValues replaces the values in a statement by placeholders.
var TakeValues = takeValues
