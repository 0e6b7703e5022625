package registry

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// reading is the time for which a request can read the images of a repository. The registry remembers what it has read, so that another
// attempt gets further.
const reading = 20 * time.Second

// patiently limits the time in which do reads the images of a repository. The error is late if that takes too long.
func patiently(ctx context.Context, late error, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, reading, late)
	defer cancel()
	err := do(ctx)
	if err != nil && errors.Is(context.Cause(ctx), late) {
		return late
	}
	return err
}

// ErrSizing says that the calculation of a size takes too long.
var ErrSizing = errors.New("the size is being calculated: try again in some seconds")

// Size returns the number of bytes of all images that have a tag. A layer that several images share counts once. The error is ErrSizing if it takes
// too long.
func (i *Images) Size(ctx context.Context) (int64, error) {
	var sizes map[sum]int64
	err := patiently(ctx, ErrSizing, func(ctx context.Context) (err error) {
		sizes, err = i.sizes(ctx)
		return err
	})
	return total(sizes), err
}

// sizes returns the sizes of everything that belongs to images with a tag.
func (i *Images) sizes(ctx context.Context) (map[sum]int64, error) {
	tags, err := i.Tags(ctx)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var failed error
	sizes := map[sum]int64{}
	err = Parallel(ctx, tags, func(ctx context.Context, _ int, tag string) {
		d, err := i.Detail(ctx, tag)
		if errors.Is(err, ErrNoTag) {
			return // it has just gone
		}
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			err = i.addSizes(ctx, sizes, d)
		}
		failed = cmp.Or(failed, err)
	})
	return sizes, cmp.Or(err, failed)
}

const (
	// measuring is the time for which a request can measure the sizes of the repositories of a project, and measuredAtOnce the number of
	// them.
	measuring      = 500 * time.Millisecond
	measuredAtOnce = 100
)

// Measure measures the repositories of a project whose tags have changed, and records their sizes: the bytes of the images that have a tag, where a
// layer counts once in each repository. It leaves out those that take too long, which the garbage collection measures.
func (r *Registry) Measure(ctx context.Context, project types.UID) error {
	changed, err := r.Records.Unsized(ctx, project, measuredAtOnce)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeoutCause(ctx, measuring, ErrSizing)
	defer cancel()
	for _, c := range changed {
		images, err := r.Images(ctx, c)
		if err == nil {
			err = images.measure(limited)
		}
		if errors.Is(err, ErrSizing) {
			break
		}
		// A repository that cannot be read does not hide the sizes of the others.
	}
	return ctx.Err()
}

// measure records the size of the images, unless it is recorded.
func (i *Images) measure(ctx context.Context) error {
	if i.record.Sized == i.record.Changes {
		return nil
	}
	size, err := i.Size(ctx)
	if err != nil {
		return err
	}
	return i.registry.Records.Resize(ctx, i.record.ID, i.record.Changes, size)
}
