package conformance

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/feature"
	"github.com/forgeplane/forgeplane/test/forgeplane"
	"github.com/forgeplane/forgeplane/test/rights"
)

// objectWrite is a write of an object by one of Forgeplane's accounts.
type objectWrite struct{ account, verb, kind, namespace, name string }

// servingSecret is the Secret of the server's certificate, which no line is about: it is nobody's but the processes' own.
const servingSecret = "forgeplane-apiserver-tls"

// checkWrites holds the audit logs of both processes, which are complete, against what kube-apiserver has seen them write: each write of
// one of Forgeplane's kinds and of a Secret has a line, and no more than one; and so has each id in identified that has come into force. What
// else a status says has no line.
func checkWrites(identified map[audit.Object]bool) {
	GinkgoHelper()
	seen := seenWrites()
	done, failed := map[objectWrite]int{}, map[objectWrite]int{}
	for user, path := range logs {
		text, all := linesOf(path)
		told.hides(text)
		for _, e := range all {
			for _, o := range e.Objects {
				w := objectWrite{user, o.Verb, o.Kind, o.Namespace, o.Name}
				switch {
				case o.Verb == "update-status" && !o.Failed && (e.Door != audit.Controller || e.Action == "identify"):
					delete(identified, audit.Object{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, UID: o.UID, ID: o.ID})
				case o.Failed: // one that had no answer may have been done
					failed[w]++
				case e.Action != "purge": // which names what somebody else has deleted
					done[w]++
				}
			}
		}
	}
	var wrong []string
	for w, n := range seen {
		if lines := done[w]; lines > n || lines+failed[w] < n {
			wrong = append(wrong, fmt.Sprintf("%+v: kube-apiserver has seen it %d times, and %d lines tell of it", w, n, lines))
		}
	}
	slices.Sort(wrong)
	Expect(wrong).To(BeEmpty())
	Expect(identified).To(BeEmpty(), "ids that came into force without a line")
	AddReportEntry("writes", len(seen))
}

// seenWrites are those that kube-apiserver has let through, and how often.
func seenWrites() map[objectWrite]int {
	GinkgoHelper()
	log, err := os.ReadFile(controlPlane.AuditLog())
	Expect(err).NotTo(HaveOccurred())
	all := map[objectWrite]int{}
	verbs := map[string]string{"create": "create", "update": "update", "patch": "update", "delete": "delete"}
	Expect(rights.Each(bytes.NewReader(log), forgeplane.Namespace, func(account string, e *auditv1.Event) {
		ref, verb := e.ObjectRef, verbs[e.Verb]
		ours := ref.APIGroup == v1alpha1.GroupVersion.Group || ref.Resource == "secrets" && ref.Name != servingSecret ||
			ref.Resource == "configmaps" && ref.Name == feature.ConfigMap
		if !ours || verb == "" || ref.Subresource != "" || e.ResponseStatus == nil || e.ResponseStatus.Code >= http.StatusMultipleChoices {
			return
		}
		kind, err := api.RESTMapper().KindFor(schema.GroupVersionResource{Group: ref.APIGroup, Version: ref.APIVersion, Resource: ref.Resource})
		Expect(err).NotTo(HaveOccurred())
		all[objectWrite{e.User.Username, verb, kind.Kind, ref.Namespace, ref.Name}]++
	})).To(Succeed())
	return all
}

// inForce are the objects whose id is in force.
func inForce() map[audit.Object]bool {
	GinkgoHelper()
	all := map[audit.Object]bool{}
	for gvk := range api.Scheme().AllKnownTypes() {
		obj, err := api.Scheme().New(gvk)
		Expect(err).NotTo(HaveOccurred())
		if _, identified := obj.(v1alpha1.Identified); !identified {
			continue
		}
		list, err := api.Scheme().New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		Expect(err).NotTo(HaveOccurred())
		Expect(api.List(context.Background(), list.(client.ObjectList))).To(Succeed())
		Expect(meta.EachListItem(list, func(item runtime.Object) error {
			o := item.(v1alpha1.Identified)
			if _, status := o.IDs(); *status != 0 {
				all[audit.Object{Kind: gvk.Kind, Namespace: o.GetNamespace(), Name: o.GetName(), UID: string(o.GetUID()), ID: *status}] = true
			}
			return nil
		})).To(Succeed())
	}
	return all
}
