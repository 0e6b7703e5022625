package mergerequest

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"
)

// mention is an issue of the project that the description of a merge request mentions.
type mention struct {
	bun.BaseModel `bun:"table:merge_request_issues"`

	MergeRequestID int64 `bun:"merge_request_id,pk"`
	Issue          int64 `bun:"issue_iid,pk"`
	Closes         bool  `bun:"closes"`
}

// maxMentions is the maximum number of issues that a merge request closes, and of those that it mentions.
const maxMentions = 100

var (
	closing = regexp.MustCompile(`(?i)\b(?:clos(?:e[sd]?|ing)|fix(?:e[sd]|ing)?|resolv(?:e[sd]?|ing)):?\s+(#\d+\b(?:(?:\s*,\s*|\s+and\s+|\s*,\s+and\s+)#\d+\b)*)`)
	number  = regexp.MustCompile(`(?:^|[^\w/&!#])#(\d+)\b`)
)

// Closes returns the iids of the issues that a description closes, as in "Closes #1" and "Fixes #2, #3".
func Closes(description string) (iids []int64) {
	for _, phrase := range closing.FindAllStringSubmatch(description, -1) {
		iids = numbers(iids, phrase[1])
	}
	return iids
}

// numbers adds the iids of the issues that a text mentions.
func numbers(iids []int64, text string) []int64 {
	for _, found := range number.FindAllStringSubmatch(text, -1) {
		iid, err := strconv.ParseInt(found[1], 10, 64)
		if err == nil && len(iids) < maxMentions && !slices.Contains(iids, iid) {
			iids = append(iids, iid)
		}
	}
	return iids
}

// mentions returns the issues that the description of m mentions.
func (m *MergeRequest) mentions() (all []mention) {
	closes := Closes(m.Description)
	for _, iid := range closes {
		all = append(all, mention{MergeRequestID: m.ID, Issue: iid, Closes: true})
	}
	for _, iid := range numbers(nil, m.Description) {
		if !slices.Contains(closes, iid) {
			all = append(all, mention{MergeRequestID: m.ID, Issue: iid})
		}
	}
	return all
}

// Mentioning returns a page of the merge requests of a project that mention an issue of it, the oldest first, and their number. If closing is true,
// they are only those that close it.
func (s *Store) Mentioning(ctx context.Context, project types.UID, issue int64, closing bool, skip, limit int) (page []MergeRequest, total int, err error) {
	err = s.db.Read(ctx, fmt.Sprintf("listing the merge requests that mention issue %d", issue), func(ctx context.Context, db bun.IDB) error {
		of := db.NewSelect().Model((*mention)(nil)).Column("merge_request_id").Where("issue_iid = ?", issue)
		if closing {
			of = of.Where("closes")
		}
		q := db.NewSelect().Model(&page).ExcludeColumn("text").Where("subject_uid = ?", project).Where("id IN (?)", of)
		n, err := q.Order("id").Offset(int64(skip)).Limit(int64(limit)).ScanAndCount(ctx)
		if total = int(n); err != nil {
			return err
		}
		return complete(ctx, db, page)
	})
	return page, total, err
}
