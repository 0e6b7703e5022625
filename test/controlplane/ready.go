package controlplane

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"
)

const (
	readyInterval = 50 * time.Millisecond
	readyTimeout  = 90 * time.Second
)

// waitReady polls kube-apiserver until it is ready, because this state cannot be watched.
func (c *ControlPlane) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("kube-apiserver was not ready within %s", readyTimeout))
	defer cancel()
	config := c.Administrator()
	config.Timeout = 5 * time.Second
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ticker := time.NewTicker(readyInterval)
	defer ticker.Stop()
	for {
		text, err := clientset.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		if err == nil {
			return nil
		}
		select {
		case failure := <-c.Failed():
			return failure
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), fmt.Errorf("its last answer: %w: %s", err, text))
		case <-ticker.C:
		}
	}
}
