package chart_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/test/controlplane"
)

// node runs the pods of hooks, as processes of this machine that have the rights of their accounts. The control plane of the tests has no nodes.
type node struct {
	cluster *controlplane.ControlPlane
	client  client.Client
	// url is where the forge is on this machine.
	url string
}

// startNode starts a node that stops with the container of specs.
func startNode(cluster *controlplane.ControlPlane) *node {
	GinkgoHelper()
	c, err := client.New(cluster.Administrator(), client.Options{Scheme: clientgoscheme.Scheme})
	Expect(err).NotTo(HaveOccurred())
	n := &node{cluster: cluster, client: c}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer GinkgoRecover()
		defer close(done)
		for ticker := time.NewTicker(200 * time.Millisecond); ; {
			n.runJobs(ctx)
			n.runPods(ctx)
			select {
			case <-ctx.Done():
				ticker.Stop()
				return
			case <-ticker.C:
			}
		}
	}()
	DeferCleanup(func() {
		cancel()
		<-done
	})
	return n
}

// runJobs runs the pods of new Jobs, and reports that they are complete.
func (n *node) runJobs(ctx context.Context) {
	var jobs batchv1.JobList
	if err := n.client.List(ctx, &jobs, client.InNamespace(namespace)); err != nil {
		return // the node is stopping, or the cluster is starting
	}
	for _, job := range jobs.Items {
		if job.Status.StartTime != nil {
			continue
		}
		now := metav1.Now()
		job.Status = batchv1.JobStatus{StartTime: &now, Failed: 1, Conditions: []batchv1.JobCondition{
			{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue}, {Type: batchv1.JobFailed, Status: corev1.ConditionTrue},
		}}
		if n.run(ctx, job.Spec.Template.Spec) {
			now = metav1.Now()
			job.Status = batchv1.JobStatus{StartTime: job.Status.StartTime, CompletionTime: &now, Succeeded: 1, Conditions: []batchv1.JobCondition{
				{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue}, {Type: batchv1.JobComplete, Status: corev1.ConditionTrue},
			}}
		}
		Expect(n.client.Status().Update(ctx, &job)).To(Succeed())
	}
}

// runPods runs new pods that belong to nothing, and reports how they ended.
func (n *node) runPods(ctx context.Context) {
	var pods corev1.PodList
	if err := n.client.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
		return
	}
	for _, pod := range pods.Items {
		if pod.Status.Phase != corev1.PodPending {
			continue
		}
		pod.Status.Phase = corev1.PodFailed
		if n.run(ctx, pod.Spec) {
			pod.Status.Phase = corev1.PodSucceeded
		}
		Expect(n.client.Status().Update(ctx, &pod)).To(Succeed())
	}
}

// run runs the process of a pod, and reports whether it succeeded. Its ConfigMaps and Secrets are in a directory of this machine.
func (n *node) run(ctx context.Context, pod corev1.PodSpec) bool {
	space := admin.Space()
	account := pod.ServiceAccountName
	if account == "" {
		account = "default"
	}
	identity, err := n.cluster.Identity("system:serviceaccount:"+namespace+":"+account, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	Expect(err).NotTo(HaveOccurred())
	kubeconfig := filepath.Join(space, "kubeconfig")
	Expect(controlplane.WriteKubeconfig(kubeconfig, identity)).To(Succeed())
	container := pod.Containers[0]
	args := strings.Join(container.Args, "\n")
	for _, mount := range container.VolumeMounts {
		files := n.files(ctx, pod, mount.Name)
		if len(files) == 0 {
			continue // /tmp
		}
		directory := filepath.Join(space, mount.Name)
		Expect(os.Mkdir(directory, 0o700)).To(Succeed())
		for name, text := range files {
			Expect(os.WriteFile(filepath.Join(directory, name), text, 0o600)).To(Succeed())
		}
		args = strings.ReplaceAll(args, "="+mount.MountPath, "="+directory)
		args = strings.ReplaceAll(args, "\n"+mount.MountPath, "\n"+directory)
	}
	all := append(strings.Split(args, "\n"), "--kubeconfig="+kubeconfig)
	if strings.Contains(args, "--url=") {
		// kube-apiserver reaches the servers of this machine at no address of a Service.
		all = append(all, "--url="+n.url, "--kubernetes=false")
	}
	Expect(container.Command).To(Equal([]string{"forgeplane"}))
	screen, err := admin.Try(checkout.Program("forgeplane"), all...)
	GinkgoWriter.Printf("%s\n%s\n", strings.Join(all, " "), screen)
	return err == nil
}

// files returns the content of a volume that is a ConfigMap or a Secret.
func (n *node) files(ctx context.Context, pod corev1.PodSpec, volume string) map[string][]byte {
	for _, v := range pod.Volumes {
		if v.Name != volume {
			continue
		}
		files := map[string][]byte{}
		if v.ConfigMap != nil {
			var source corev1.ConfigMap
			Expect(n.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v.ConfigMap.Name}, &source)).To(Succeed())
			for name, text := range source.Data {
				files[name] = []byte(text)
			}
		}
		if v.Secret != nil {
			var source corev1.Secret
			Expect(n.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v.Secret.SecretName}, &source)).To(Succeed())
			files = source.Data
		}
		return files
	}
	return nil
}
