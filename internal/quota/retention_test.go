package quota_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/quota"
)

func TestRetention_isUnlimitedIfZero(t *testing.T) {
	g := NewWithT(t)
	var none quota.Retention
	g.Expect(none.Exceeds(1<<30, 1<<60)).To(BeFalse())
	number := quota.Retention{Repositories: 2}
	g.Expect(number.Exceeds(2, 1<<60)).To(BeFalse())
	g.Expect(number.Exceeds(3, 0)).To(BeTrue())
	bytes := quota.Retention{Bytes: 10}
	g.Expect(bytes.Exceeds(1<<30, 10)).To(BeFalse())
	g.Expect(bytes.Exceeds(1, 11)).To(BeTrue())
	usual := quota.DefaultRetention()
	g.Expect(usual.Exceeds(1000, 100<<30)).To(BeFalse())
	g.Expect(usual.Exceeds(1001, 0)).To(BeTrue())
	g.Expect(usual.Exceeds(1, 100<<30+1)).To(BeTrue())
}
