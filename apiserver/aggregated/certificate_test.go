package aggregated_test

import (
	"context"
	"crypto/tls"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/apiserver/aggregated"
	"github.com/forgeplane/forgeplane/internal/certificate"
	"github.com/forgeplane/forgeplane/internal/registration"
	"github.com/forgeplane/forgeplane/test/patience"
)

var _ = Describe("The certificate", func() {
	var c client.Client
	managed := func(secret string, clock *clocktesting.FakeClock) *certificate.Source {
		return certificate.Managed(certificate.Options{
			Client: c, Secret: client.ObjectKey{Namespace: platform, Name: secret},
			Names: []string{"forgeplane-apiserver." + platform + ".svc"}, Clock: clock, Log: logr.Discard(),
		})
	}

	BeforeEach(func() {
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		Expect(err).NotTo(HaveOccurred())
		c, err = newClient(config)
		Expect(err).NotTo(HaveOccurred())
	})

	It("is the same for replicas that create and renew it at the same time", func(ctx SpecContext) {
		clock := clocktesting.NewFakeClock(time.Now())
		replicas := make([]*certificate.Source, 6)
		for i := range replicas {
			replicas[i] = managed("shared", clock)
		}
		var last string
		for range 3 {
			var wait sync.WaitGroup
			for _, r := range replicas {
				wait.Go(func() {
					defer GinkgoRecover()
					Expect(r.Load(ctx)).To(BeTrue())
				})
			}
			wait.Wait()
			first, _ := replicas[0].Pair()
			Expect(string(first)).NotTo(Equal(last))
			for _, r := range replicas {
				pair, _ := r.Pair()
				Expect(string(pair)).To(Equal(string(first)))
			}
			last = string(first)
			clock.Step(61 * 24 * time.Hour)
		}
	}, NodeTimeout(patience.Wait))

	It("is renewed while the server serves, and while kube-apiserver uses it", func(ctx SpecContext) {
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		Expect(err).NotTo(HaveOccurred())
		administrators, err := aggregated.NewAdministrators(config)
		Expect(err).NotTo(HaveOccurred())
		// The certificate that is renewed and its successor must both be valid by the real clock, which kube-apiserver uses.
		clock := clocktesting.NewFakeClock(time.Now().Add(-61 * 24 * time.Hour))
		address, port := freeAddress()
		serving, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		server := aggregated.New(aggregated.Options{
			Address: address, Kubeconfig: kubeconfig, Config: config, URL: kubernetesURL, Tree: echo(administrators), Routes: routes(), Known: known,
			Certificates: managed("renewed", clock),
			Registration: registration.Server{Options: registrationOptions(c, port, logr.Discard()), Name: "renewing"},
			Ready:        func(*http.Request) error { return nil }, Log: logr.Discard(),
		})
		go func() { ended <- server.Start(serving) }()
		DeferCleanup(func() {
			stop()
			Eventually(ended).Should(Receive(Succeed()))
		})
		available()
		served := func() string {
			connection, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(ctx, "tcp", address)
			if err != nil {
				return ""
			}
			defer func() { _ = connection.Close() }()
			return connection.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.String()
		}
		before := served()
		Expect(before).NotTo(BeEmpty())
		clock.Step(61 * 24 * time.Hour)
		Eventually(served).ShouldNot(Or(Equal(before), BeEmpty()))
		Expect(as(cluster.Administrator()).get("/version").Path).To(Equal("/version"))
		available()
	}, NodeTimeout(2*time.Minute))
})
