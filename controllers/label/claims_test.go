package label_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/internal/label"
	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("A label:", func() {
	forge.DescribeHolder("a title", func() *forge.Forge { return f }, func() forge.Contest {
		old, young := forge.LabelTitled("old").Of(website).Build(), forge.LabelTitled("bug").Named("young").Of(website).Build()
		return forge.Contest{
			Old: old, Young: young, Words: "the title bug",
			Seize: func() { f.Change(old, func() { old.Spec.Title = "bug" }) },
			Holder: func(ctx context.Context) (client.Object, error) {
				s, err := f.Catalog.ScopeOf(ctx, young)
				if err != nil {
					return nil, err
				}
				return label.Holder(ctx, f.Catalog, s, "bug")
			},
		}
	})
})
