package pipeline

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/uptrace/bun"
)

const (
	// MaxLog is the maximum size of the log of a job in bytes.
	MaxLog = 32 << 20
	// logPiece is the number of bytes at which ReadLog stops.
	logPiece = 1 << 20
)

var (
	// ErrLogPosition says that a part of a log does not follow what is stored.
	ErrLogPosition = errors.New("the log has another length")
	// ErrLogSize says that a log would be larger than MaxLog.
	ErrLogSize = fmt.Errorf("the log of a job is larger than %d bytes", MaxLog)
)

// logPart is a part of the log of a job, as a runner sent it.
type logPart struct {
	bun.BaseModel `bun:"table:pipeline_logs"`

	JobID   int64  `bun:"job_id,pk"`
	Start   int64  `bun:"start,pk"`
	Content []byte `bun:"content"`
}

// LogSize returns the number of bytes in the log of a job.
func (s *Store) LogSize(ctx context.Context, jobID int64) (size int64, err error) {
	err = s.db.Read(ctx, fmt.Sprintf("reading the size of the log of job %d", jobID), func(ctx context.Context, db bun.IDB) error {
		size, err = logSize(ctx, db, jobID)
		return err
	})
	return size, err
}

func logSize(ctx context.Context, db bun.IDB, jobID int64) (size int64, err error) {
	last := db.NewSelect().Model((*logPart)(nil)).ColumnExpr("start + length(content) AS size").Where("job_id = ?", jobID).Order("start DESC").Limit(1)
	err = db.NewSelect().TableExpr("(?) AS last", last).ColumnExpr("coalesce(max(size), 0)").Scan(ctx, &size)
	return size, err
}

// AppendLog adds content at a position of the log of a job, records that the runner has sent something, and returns the size of the log. The error
// is ErrLogPosition, with the size, if the log ends at another position, or ErrLogSize.
func (s *Store) AppendLog(ctx context.Context, jobID, start int64, content []byte) (size int64, err error) {
	err = s.db.Atomically(ctx, fmt.Sprintf("writing the log of job %d", jobID), func(ctx context.Context, db bun.IDB) error {
		// Two requests must not find the same size: the first statement locks the row.
		if err := s.contacted(ctx, db, jobID); err != nil {
			return err
		}
		if size, err = logSize(ctx, db, jobID); err != nil {
			return err
		}
		switch {
		case size != start:
			return ErrLogPosition
		case size+int64(len(content)) > MaxLog:
			return ErrLogSize
		case len(content) == 0:
			return nil
		}
		size += int64(len(content))
		_, err = db.NewInsert().Model(&logPart{JobID: jobID, Start: start, Content: content}).Exec(ctx)
		return err
	})
	return size, err
}

// LogChecksum returns the size of the log of a job in bytes, and its CRC-32 with the polynomial of IEEE.
func (s *Store) LogChecksum(ctx context.Context, jobID int64) (size int64, sum uint32, err error) {
	for {
		piece, err := s.ReadLog(ctx, jobID, size)
		if err != nil || len(piece) == 0 {
			return size, sum, err
		}
		size, sum = size+int64(len(piece)), crc32.Update(sum, crc32.IEEETable, piece)
	}
}

// ForgetLog removes the log of a job that is running, for a runner that sends it again.
func (s *Store) ForgetLog(ctx context.Context, jobID int64) error {
	return s.db.Atomically(ctx, fmt.Sprintf("removing the log of job %d", jobID), func(ctx context.Context, db bun.IDB) error {
		if err := s.contacted(ctx, db, jobID); err != nil { // locks the row, as in AppendLog
			return err
		}
		return removeLog(ctx, db, jobID)
	})
}

func removeLog(ctx context.Context, db bun.IDB, jobID int64) error {
	_, err := db.NewDelete().Model((*logPart)(nil)).Where("job_id = ?", jobID).Exec(ctx)
	return err
}

// Contact records that the runner of a job has sent something about it.
func (s *Store) Contact(ctx context.Context, jobID int64) error {
	return s.db.Write(ctx, fmt.Sprintf("recording the contact of job %d", jobID), func(ctx context.Context, db bun.IDB) error {
		return s.contacted(ctx, db, jobID)
	})
}

func (s *Store) contacted(ctx context.Context, db bun.IDB, jobID int64) error {
	return found(db.NewUpdate().Model((*Job)(nil)).Set("contacted_at = ?", s.clock.Now().UTC()).Where("id = ?", jobID).Exec(ctx))
}

// ReadLog returns a piece of the log of a job that begins at a position, and nothing at its end.
func (s *Store) ReadLog(ctx context.Context, jobID, from int64) (piece []byte, err error) {
	var parts []logPart
	err = s.db.Read(ctx, fmt.Sprintf("reading the log of job %d", jobID), func(ctx context.Context, db bun.IDB) error {
		first := db.NewSelect().Model((*logPart)(nil)).ColumnExpr("max(start)").Where("job_id = ?", jobID).Where("start <= ?", from)
		return db.NewSelect().Model(&parts).Where("job_id = ?", jobID).Where("start >= (?)", first).Where("start < ?", from+logPiece).Order("start").Scan(ctx)
	})
	for _, p := range parts {
		skip := max(0, from-p.Start)
		if skip < int64(len(p.Content)) {
			piece = append(piece, p.Content[skip:]...)
		}
	}
	return piece, err
}
