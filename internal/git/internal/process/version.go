package process

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

// Version is the version of a git binary. Suffixes of vendors and release candidates, as in 2.39.5.windows.1, are ignored.
type Version struct{ Major, Minor, Patch int }

// Needed is the oldest supported version. In older ones, the content of a repository can cause writes beyond allocated memory
// (CVE-2022-41903, CVE-2022-23521).
var Needed = Version{2, 39, 1}

// AtLeast reports whether v is w or newer.
func (v Version) AtLeast(w Version) bool {
	return slices.Compare([]int{v.Major, v.Minor, v.Patch}, []int{w.Major, w.Minor, w.Patch}) >= 0
}

func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }

var versionText = regexp.MustCompile(`^git version (\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?(?:[^0-9].*)?\s*$`)

func parseVersion(text string) (Version, error) {
	m := versionText.FindStringSubmatch(text)
	if m == nil {
		return Version{}, errors.New("the answer is not that of git")
	}
	var number [3]int
	for i := range number {
		number[i], _ = strconv.Atoi(m[i+1]) // a missing number is 0
	}
	return Version{number[0], number[1], number[2]}, nil
}
