package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// applyCommand returns the command that creates the first objects of an installation.
func applyCommand() *cobra.Command {
	var kubeconfig string
	timeout := 2 * time.Minute
	cmd := &cobra.Command{
		Use: "apply FILE...", Short: "Apply objects as soon as the cluster serves their kinds", Args: cobra.MinimumNArgs(1),
		Long: `Apply the objects of YAML files. If the cluster does not serve their kinds yet, or refuses them for another reason that can pass,
the command tries again until the time limit. The Helm chart declares the shards and the first administrator with it.`,
		RunE: func(cmd *cobra.Command, files []string) error {
			config, err := clusterConfig(kubeconfig)
			if err != nil {
				return err
			}
			c, err := client.New(config, client.Options{})
			if err != nil {
				return fmt.Errorf("connecting to the cluster: %w", err)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			for _, file := range files {
				if err := applyFile(ctx, c, file); err != nil {
					return fmt.Errorf("applying %s: %w", file, err)
				}
			}
			return nil
		},
	}
	bindKubeconfig(cmd.Flags(), &kubeconfig)
	cmd.Flags().DurationVar(&timeout, "timeout", timeout, "time limit of the command")
	return cmd
}

// applyFile applies the objects of a YAML file.
func applyFile(ctx context.Context, c client.Client, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	for decoder := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if len(object.Object) == 0 {
			continue
		}
		if err := applyPatiently(ctx, c, object); err != nil {
			return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
}

// applyPatiently applies an object until the cluster accepts it, finds it invalid, or ctx ends.
func applyPatiently(ctx context.Context, c client.Client, object *unstructured.Unstructured) error {
	var refusal error
	err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()), client.FieldOwner("forgeplane-setup"), client.ForceOwnership)
		if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
			return false, err
		}
		if err != nil && ctx.Err() == nil {
			refusal = err
		}
		return err == nil, nil
	})
	if err != nil && ctx.Err() != nil {
		return errors.Join(err, refusal)
	}
	return err
}
