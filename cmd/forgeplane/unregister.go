package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/internal/registration"
)

// unregisterCommand returns the command that removes the REST API from kube-apiserver permanently.
func unregisterCommand() *cobra.Command {
	var kubeconfig string
	timeout := 4 * time.Minute
	deployment := client.ObjectKey{Namespace: "forgeplane-system", Name: "forgeplane-all"}
	service := service{name: "forgeplane-apiserver"}
	cmd := &cobra.Command{
		Use: "unregister", Short: "Stop the servers and remove the APIServices", Args: cobra.NoArgs,
		Long: `Delete the Deployment of the servers, wait until they have stopped, and remove the APIServices. The Helm chart does this before it
removes the rights of the servers: no namespace of the cluster can be deleted while an APIService gets no answer.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := clusterConfig(kubeconfig)
			if err != nil {
				return err
			}
			scheme := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiregistrationv1.AddToScheme} {
				if err := add(scheme); err != nil {
					return fmt.Errorf("registering kinds: %w", err)
				}
			}
			c, err := client.New(config, client.Options{Scheme: scheme})
			if err != nil {
				return fmt.Errorf("connecting to the cluster: %w", err)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			if err := deleteDeployment(ctx, c, deployment); err != nil {
				return fmt.Errorf("deleting the Deployment %s: %w", deployment, err)
			}
			o := registration.Options{Groups: registration.Groups(), Client: c, Service: client.ObjectKey{Namespace: deployment.Namespace, Name: service.name}}
			if err := o.Unregister(ctx); err != nil {
				return fmt.Errorf("removing the registration: %w", err)
			}
			return nil
		},
	}
	bindKubeconfig(cmd.Flags(), &kubeconfig)
	cmd.Flags().StringVar(&deployment.Namespace, "namespace", deployment.Namespace, "namespace of the platform")
	cmd.Flags().StringVar(&deployment.Name, "deployment", deployment.Name, "Deployment of the servers")
	cmd.Flags().StringVar(&service.name, "service", service.name, "Service of the servers; an APIService of another one stays")
	cmd.Flags().DurationVar(&timeout, "timeout", timeout, "time limit of the command")
	return cmd
}

// deleteDeployment deletes a Deployment and waits until it is gone with its pods.
func deleteDeployment(ctx context.Context, c client.Client, key client.ObjectKey) error {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := c.Delete(ctx, deployment, client.PropagationPolicy(metav1.DeletePropagationForeground)); client.IgnoreNotFound(err) != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, key, deployment)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}
