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
	"github.com/forgeplane/forgeplane/internal/registry/token"
	"github.com/forgeplane/forgeplane/test/forgeplane"
	"github.com/forgeplane/forgeplane/test/rights"
)

// objectWrite is a write of an object by one of Forgeplane's accounts.
type objectWrite struct{ account, verb, kind, namespace, name string }

// ownSecrets are the Secrets of the server's certificate and of the keys for the tokens of the registry. They belong to the processes, so no line
// describes them.
var ownSecrets = []string{"forgeplane-apiserver-tls", token.SecretName}

// checkWrites compares the audit logs of both processes, which are complete, with the writes that kube-apiserver has seen. Each write of one of
// Forgeplane's kinds and of a Secret must have exactly one line, and so must each id in identified that has come into force. Other changes of a
// status have no line.
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
				case o.Failed: // a write without an answer may have succeeded
					failed[w]++
				case e.Action != "purge": // a purge names an object that another client has deleted
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

// seenWrites returns the writes that kube-apiserver has accepted, with their number.
func seenWrites() map[objectWrite]int {
	GinkgoHelper()
	log, err := os.ReadFile(controlPlane.AuditLog())
	Expect(err).NotTo(HaveOccurred())
	all := map[objectWrite]int{}
	verbs := map[string]string{"create": "create", "update": "update", "patch": "update", "delete": "delete"}
	Expect(rights.Each(bytes.NewReader(log), forgeplane.Namespace, func(account string, e *auditv1.Event) {
		ref, verb := e.ObjectRef, verbs[e.Verb]
		ours := ref.APIGroup == v1alpha1.GroupVersion.Group || ref.Resource == "secrets" && !slices.Contains(ownSecrets, ref.Name) ||
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

// inForce returns the objects whose id is in force.
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
