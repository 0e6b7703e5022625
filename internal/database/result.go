package database

import (
	"database/sql"
	"errors"
)

// Changed returns missing if a statement changed no row. result and err are the results of the statement.
func Changed(result sql.Result, err, missing error) error {
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n > 0 {
		return err
	}
	return missing
}

// Found returns missing if a query for one row found none. err is the error of the query.
func Found(err, missing error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return missing
	}
	return err
}
