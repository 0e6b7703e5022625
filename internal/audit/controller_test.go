package audit_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/audit/audittest"
	"github.com/forgeplane/forgeplane/internal/git/update"
)

func newUser() *v1alpha1.User {
	return &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: "ann", UID: "u1"}, Spec: v1alpha1.UserSpec{ID: 7, Username: "ann"}}
}

// fails makes writes of Secrets fail with err.
func fails(err error) interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if _, is := o.(*corev1.Secret); is && err != nil {
				return err
			}
			return c.Create(ctx, o, opts...)
		},
	}
}

func controllerClient(t *testing.T, err error) (client.Client, *audittest.Lines) {
	t.Helper()
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(errors.Join(v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme))).To(Succeed())
	lines := audittest.Open(t)
	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.User{}).WithObjects(newUser()).WithInterceptorFuncs(fails(err)).Build()
	told := lines.Client(c)
	return told, lines
}

func newSecret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "s", UID: "u2"}, StringData: map[string]string{"token": "correct-horse"}}
}

func TestBackground_hasOneLineIfItWrites(t *testing.T) {
	failure := errors.New("no room")
	main := update.Ref{Name: "refs/heads/main", New: "1"}
	for name, tt := range map[string]struct {
		do   func(*audit.Record) error
		want gomegatypes.GomegaMatcher
	}{
		"nothing": {func(*audit.Record) error { return failure }, BeEmpty()},
		"an object": {func(r *audit.Record) error {
			r.Did("merge", audit.MergeRequest, "acme/web!1", 7)
			return nil
		}, HaveExactElements(And(HaveField("Door", audit.Controller), HaveField("Action", "merge"), HaveField("Result", audit.Done)))},
		"a ref that is refused": {func(r *audit.Record) error {
			r.Updates([]update.Ref{main}, audit.Refused, map[string]string{main.Name: "protected"})
			return nil
		}, HaveExactElements(And(HaveField("Result", audit.Refused), HaveField("Reason", "protected")))},
		"a ref before a failure": {func(r *audit.Record) error {
			r.Updates([]update.Ref{main}, audit.Done, nil)
			return failure
		}, HaveExactElements(And(HaveField("Result", audit.Failed), HaveField("Refs", HaveExactElements(HaveField("Result", audit.Done)))))},
	} {
		t.Run(name, func(t *testing.T) {
			g, lines := NewWithT(t), audittest.Open(t)
			var want error
			err := lines.Background(t.Context(), "merge", func(ctx context.Context) error {
				want = tt.do(audit.From(ctx))
				return want
			})
			if want == nil {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(want))
			}
			g.Expect(lines.Events()).To(tt.want)
		})
	}
}

func TestClientOfControllers_logsEachWriteAndItsCause(t *testing.T) {
	g := NewWithT(t)
	c, lines := controllerClient(t, nil)
	p := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "web", UID: "u3"}, Spec: v1alpha1.ProjectSpec{ID: 5}}
	p.Status.FullPath = "acme/web"
	ctx, s := audit.For(t.Context(), p), newSecret()
	g.Expect(c.Create(audit.WithReason(ctx, audit.Event{Action: "generate", Reason: "a value"}), s)).To(Succeed())
	before := s.DeepCopy()
	s.Labels = map[string]string{"a": "b"}
	g.Expect(c.Patch(audit.WithReason(audit.WithReason(ctx, audit.Event{Action: "outer", Reason: "outer"}), audit.Event{Action: "inner"}), s, client.MergeFrom(before))).To(Succeed())
	g.Expect(c.Update(ctx, s)).To(Succeed())
	g.Expect(c.Delete(ctx, s)).To(Succeed())
	about := audit.Object{Kind: "Project", Namespace: "acme", Name: "web", ID: 5, UID: "u3", Path: "acme/web"}
	line := func(action, reason, verb string) any {
		return And(HaveField("Door", audit.Controller), HaveField("Controller", "Project"), HaveField("Result", audit.Done), HaveField("Status", 0),
			HaveField("Action", action), HaveField("Reason", reason), HaveField("About", HaveValue(Equal(about))),
			HaveField("Objects", ConsistOf(audit.Object{Verb: verb, Kind: "Secret", Namespace: "acme", Name: "s", UID: "u2"})))
	}
	g.Expect(lines.Events()).To(HaveExactElements(
		line("generate", "a value", "create"), line("inner", "outer", "update"), line("reconcile", "", "update"), line("reconcile", "", "delete"),
	))
	g.Expect(string(lines.Text())).NotTo(ContainSubstring("correct-horse"))
}

func TestClientOfControllers_logsStatusUpdatesOnlyWithAction(t *testing.T) {
	g := NewWithT(t)
	c, lines := controllerClient(t, nil)
	u := newUser()
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(u), u)).To(Succeed())
	ctx := audit.For(t.Context(), u)
	for _, ctx := range []context.Context{ctx, audit.WithReason(ctx, audit.Event{Reason: "a reason is no word"}), audit.WithReason(ctx, audit.Event{Action: "identify"})} {
		before := u.DeepCopy()
		u.Status.ID++
		g.Expect(c.Status().Patch(ctx, u, client.MergeFrom(before))).To(Succeed())
	}
	g.Expect(lines.Events()).To(ConsistOf(And(HaveField("Action", "identify"), HaveField("Objects", ConsistOf(
		audit.Object{Verb: "update-status", Kind: "User", Name: "ann", ID: 7, UID: "u1"},
	)))))
}

func TestClientOfControllers_logsOutcomeOfWrite(t *testing.T) {
	there := apierrors.NewAlreadyExists(corev1.Resource("secrets"), "correct-horse")
	for name, tt := range map[string]struct {
		err    error
		result audit.Result
		status int
	}{
		"refused":                     {there, audit.Refused, 409},
		"failed":                      {apierrors.NewInternalError(errors.New("correct-horse")), audit.Failed, 500},
		"no answer":                   {errors.New("correct-horse"), audit.Failed, 0},
		"refused, in a wrapped error": {errors.Join(errors.New("writing"), there), audit.Refused, 409},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c, lines := controllerClient(t, tt.err)
			g.Expect(c.Create(t.Context(), newSecret())).To(MatchError(tt.err))
			g.Expect(lines.Events()).To(ConsistOf(And(HaveField("Result", tt.result), HaveField("Status", tt.status), HaveField("Objects", ConsistOf(
				And(HaveField("Verb", "create"), HaveField("Failed", true)),
			)))))
			g.Expect(string(lines.Text())).NotTo(ContainSubstring("correct-horse"))
		})
	}
}

func TestClientOfControllers_isUnwrappedWithoutLog(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	NewWithT(t).Expect((*audit.Log)(nil).Client(c)).To(BeIdenticalTo(c))
}

func TestTell_digestsFullNamesOfRefs(t *testing.T) {
	g := NewWithT(t)
	lines, digest := audittest.Open(t), sha256.New()
	var refs []audit.Ref
	for i := range 101 {
		ref := audit.Ref{Ref: update.Ref{Name: fmt.Sprintf("refs/heads/%0600d", i), New: strings.Repeat("1", 40)}, Result: audit.Done}
		fmt.Fprintln(digest, ref.Old, ref.New, ref.Name)
		refs = append(refs, ref)
	}
	lines.Tell(t.Context(), audit.Event{Action: "import", Refs: refs})
	g.Expect(lines.Events()).To(ContainElement(HaveField("Rest", HaveValue(Equal(audit.Rest{Refs: 1, Done: 1, SHA256: hex.EncodeToString(digest.Sum(nil))})))))
}
