package registrycleanup_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/distribution/distribution/v3/registry/storage/driver/inmemory"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/registry/record"
	"github.com/forgeplane/forgeplane/internal/registry/registrytest"
	"github.com/forgeplane/forgeplane/test/forge"
	"github.com/forgeplane/forgeplane/test/suite"
)

var (
	cluster *forge.Cluster
	f       *forge.Forge
	// website is a project with images in a storage and with their records in a database.
	acme    *v1alpha1.Group
	website *v1alpha1.Project
	storage *images
	db      *database.DB
)

func TestRegistryCleanup(t *testing.T) {
	suite.Run(t, "RegistryCleanup")
}

var _ = BeforeSuite(func() { cluster = forge.StartCluster() })

// images is a storage that can fail, or wait before it removes anything.
type images struct {
	driver.StorageDriver
	down atomic.Bool
	// limited says that only a number of files can still be removed. Further removals wait until their contexts end.
	limited  atomic.Bool
	removals atomic.Int64
	// unreadable is the part of the paths that cannot be listed.
	unreadable atomic.Pointer[string]
}

func (i *images) List(ctx context.Context, path string) ([]string, error) {
	if part := i.unreadable.Load(); part != nil && strings.Contains(path, *part) {
		return nil, errors.New("/srv/images is damaged")
	}
	return i.StorageDriver.List(ctx, path)
}

func (i *images) Delete(ctx context.Context, path string) error {
	if i.down.Load() {
		return errors.New("/srv/images does not answer")
	}
	if i.limited.Load() && i.removals.Add(-1) < 0 {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return i.StorageDriver.Delete(ctx, path)
}

func (i *images) Stat(ctx context.Context, path string) (driver.FileInfo, error) {
	if i.down.Load() {
		return nil, errors.New("/srv/images does not answer")
	}
	return i.StorageDriver.Stat(ctx, path)
}

// install makes an installation in which a project has the repositories "" and "web", without images.
func install(o forge.Options) {
	GinkgoHelper()
	storage, db = &images{StorageDriver: inmemory.New()}, databasetest.Open(GinkgoTB(), databasetest.SQLite(GinkgoTB()), record.Migrations())
	o.Registry = process
	f = forge.New(cluster, o)
	f.NewStorage("shard")
	acme = forge.Group("acme").In(f.NewNamespace()).Build()
	website = forge.Project("website").In(acme).Build()
	f.Create(acme, website)
	f.ExpectReady(acme, website)
	// The storage knows when tags are pushed by the time of the machine.
	f.Clock.SetTime(time.Now().Truncate(time.Second).Add(time.Minute))
}

// process returns the registry of a process that has just started.
func process(c *catalog.Catalog, clk clock.PassiveClock) *registry.Registry {
	return registrytest.NewIn(GinkgoTB(), storage, c, db, clk)
}

// repository returns the record of a repository of the website, and creates it if it does not exist.
func repository(name string) record.Repository {
	GinkgoHelper()
	f.Refresh(website)
	r, err := record.New(db, f.Clock).Ensure(GinkgoT().Context(), website.Status.ID, website.UID, name)
	Expect(err).NotTo(HaveOccurred())
	return r
}

// store stores a number of tags in a repository of the website, v000 with the oldest image.
func store(name string, tags int) {
	GinkgoHelper()
	configs := map[string]string{}
	for i := range tags {
		configs[fmt.Sprintf("v%03d", i)] = fmt.Sprintf(`{"created":%q}`, f.Clock.Now().Add(-time.Duration(tags-i)*time.Hour).Format(time.RFC3339))
	}
	registrytest.Store(GinkgoTB(), process(nil, f.Clock), repository(name), configs)
}

// tags returns the tags of a repository of the website.
func tags(name string) []string {
	GinkgoHelper()
	all, err := process(nil, f.Clock).Images(GinkgoT().Context(), repository(name))
	Expect(err).NotTo(HaveOccurred())
	names, err := all.Tags(GinkgoT().Context())
	Expect(err).NotTo(HaveOccurred())
	return names
}

// pass lets time pass, and makes the controller look at a cleanup.
func pass(m *v1alpha1.RegistryCleanup, d time.Duration) {
	GinkgoHelper()
	f.Clock.SetTime(f.Clock.Now().Add(d))
	woken := m.DeepCopy()
	metav1.SetMetaDataAnnotation(&woken.ObjectMeta, "test/look", f.Clock.Now().String())
	// Something else may have woken the controller already, and it may have deleted the cleanup.
	Expect(client.IgnoreNotFound(f.Live().Patch(GinkgoT().Context(), woken, client.MergeFrom(m)))).To(Succeed())
}

// reaches expects that the run of a cleanup reaches a state.
func reaches(m *v1alpha1.RegistryCleanup, number int, state v1alpha1.RegistryCleanupState) {
	GinkgoHelper()
	f.Eventually(m).Should(HaveField("Status.LastRun", And(Not(BeNil()), HaveField("Number", int64(number)), HaveField("State", state))))
}
