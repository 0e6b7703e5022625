package activity

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"
)

// Rows that were written before there were UIDs have none. Such a row was written for whoever had the id at that time. Where one
// object alone has the id, and was there when the row was written, the row is its own; a younger object was made anew, and the row
// is never seen again. A UID that was recorded is never rewritten, so there is nothing to tell the audit log.

// fillIn gives the rows of a subject without a UID that of the object that has its id, as far as they are its own.
func (s *Store) fillIn(ctx context.Context, subject Subject, o Known) error {
	ctx, cancel := limited(ctx)
	defer cancel()
	defer s.subscribed.clear()
	err := s.write.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		var rows []subscription
		_, err := tx.NewDelete().Model(&rows).Where("subject_kind = ?", subject.Kind).Where("subject_id = ?", subject.ID).
			Where("subject_uid = ''").Where("created_at >= ?", o.Created).Returning("*").Exec(ctx)
		if err != nil {
			return err
		}
		for i := range rows {
			rows[i].SubjectUID = o.UID
		}
		if err := insert(ctx, tx, rows); err != nil {
			return err
		}
		var uses []use
		_, err = tx.NewDelete().Model(&uses).Where("subject_kind = ?", subject.Kind).Where("subject_id = ?", subject.ID).
			Where("subject_uid = ''").Where("last_used >= ?", o.Created).Returning("*").Exec(ctx)
		for i := range uses {
			uses[i].SubjectUID = o.UID
			if err == nil {
				err = note(ctx, tx, &uses[i])
			}
		}
		return err
	})
	if err != nil {
		return failed(ctx, fmt.Sprintf("filling in the UID of %s", subject), err)
	}
	return nil
}

// fillInUser is fillIn for whom rows are of.
func (s *Store) fillInUser(ctx context.Context, id int64, o Known) error {
	ctx, cancel := limited(ctx)
	defer cancel()
	defer s.subscribed.clear()
	err := s.write.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		var rows []subscription
		_, err := tx.NewDelete().Model(&rows).Where("user_id = ?", id).Where("user_uid = ''").
			Where("created_at >= ?", o.Created).Returning("*").Exec(ctx)
		if err != nil {
			return err
		}
		for i := range rows {
			rows[i].UserUID = o.UID
		}
		return insert(ctx, tx, rows)
	})
	if err != nil {
		return failed(ctx, fmt.Sprintf("filling in the UID of user %d", id), err)
	}
	return nil
}

// removeOfUser removes the rows of a user without a UID.
func (s *Store) removeOfUser(ctx context.Context, id int64) error {
	ctx, cancel := limited(ctx)
	defer cancel()
	_, err := s.write.NewDelete().Model((*subscription)(nil)).Where("user_id = ?", id).Where("user_uid = ''").Exec(ctx)
	if err != nil {
		return failed(ctx, fmt.Sprintf("removing what there is of a former user %d", id), err)
	}
	return nil
}

// usersToFillIn returns the ids of users beyond one whose rows have no UID.
func (s *Store) usersToFillIn(ctx context.Context, after int64) (ids []int64, err error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	err = s.read.NewSelect().Model((*subscription)(nil)).Distinct().Column("user_id").Where("user_uid = ''").
		Where("user_id > ?", after).Order("user_id").Limit(subjectsAtOnce).Scan(ctx, &ids)
	if err != nil {
		return nil, failed(ctx, "listing the users whose UIDs are missing", err)
	}
	return ids, nil
}
