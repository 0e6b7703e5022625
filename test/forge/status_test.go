package forge

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

func condition(conditionType string, status metav1.ConditionStatus, reason, message string, generation int64) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message, ObservedGeneration: generation}
}

// seen returns a user of generation 4 with a status that describes the given generation.
func seen(generation int64, conditions ...metav1.Condition) *v1alpha1.User {
	return &v1alpha1.User{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "User"},
		ObjectMeta: metav1.ObjectMeta{Name: "ada", Generation: 4},
		Status:     v1alpha1.UserStatus{CommonStatus: v1alpha1.CommonStatus{ObservedGeneration: generation, Conditions: conditions}},
	}
}

func TestCheckStatus_findsProblems(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	isReady := condition("Ready", yes, "Ready", "", 4)
	notReady := condition("Ready", no, "Taken", "by bob", 4)
	reconciling := condition("Reconciling", yes, "Taken", "by bob", 4)
	isStalled := condition("Stalled", yes, "Taken", "by bob", 4)
	tests := map[string]struct {
		user *v1alpha1.User
		// want is the problem at any time, and late is the problem only if the status has just been written.
		want, late string
	}{
		"ready":                                  {seen(4, isReady), "", ""},
		"reconciling":                            {seen(4, notReady, reconciling), "", ""},
		"stalled":                                {seen(4, notReady, isStalled), "", ""},
		"settled":                                {seen(4, condition("Ready", yes, "Expired", "at noon", 4)), "", ""},
		"settled without a message":              {seen(4, condition("Ready", yes, "Expired", "", 4)), "only an object that is settled says why", ""},
		"never observed":                         {seen(-1), "", "observedGeneration is -1 of 4"},
		"of an earlier generation":               {seen(3, condition("Ready", yes, "Ready", "", 3)), "", "observedGeneration is 3 of 4"},
		"of a later generation":                  {seen(5, isReady), "observedGeneration is 5 of 4", ""},
		"without a generation":                   {seen(0, isReady), "observedGeneration is 0 of 4", ""},
		"never observed, but ready":              {seen(-1, isReady), "observedGeneration is -1 of 4", ""},
		"without Ready":                          {seen(4), "there is no condition Ready", ""},
		"Ready unknown":                          {seen(4, condition("Ready", metav1.ConditionUnknown, "Taken", "why", 4)), "Ready is unknown", ""},
		"not ready, and nothing else":            {seen(4, notReady), "neither Reconciling nor Stalled", ""},
		"ready and reconciling":                  {seen(4, isReady, reconciling), "still Reconciling or Stalled", ""},
		"ready and stalled":                      {seen(4, isReady, isStalled), "still Reconciling or Stalled", ""},
		"reconciling and stalled":                {seen(4, notReady, reconciling, isStalled), "Reconciling and Stalled at once", ""},
		"Stalled false":                          {seen(4, isReady, condition("Stalled", no, "Ready", "x", 4)), "Stalled is present and not true", ""},
		"with two reasons":                       {seen(4, notReady, condition("Stalled", yes, "Other", "by bob", 4)), "differs from that of", ""},
		"with two messages":                      {seen(4, notReady, condition("Stalled", yes, "Taken", "by eve", 4)), "differs from that of", ""},
		"with an unknown condition":              {seen(4, isReady, condition("Happy", yes, "Yes", "x", 4)), "there is no condition Happy", ""},
		"without a reason":                       {seen(4, condition("Ready", yes, "", "", 4)), "Ready has no reason", ""},
		"without a message":                      {seen(4, condition("Ready", no, "Taken", "", 4), condition("Stalled", yes, "Taken", "", 4)), "Stalled has no message", ""},
		"with an outdated condition":             {seen(4, condition("Ready", yes, "Ready", "", 3)), "", "Ready describes generation 3 of 4"},
		"with a condition of a later generation": {seen(3, condition("Ready", yes, "Ready", "", 4)), "Ready describes generation 4, the status of 3", ""},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			g := NewWithT(t)
			expectProblem(g, lawful(tt.user), tt.want)
			if tt.want == "" {
				expectProblem(g, checkStatus(tt.user), tt.late)
			} else {
				expectProblem(g, checkStatus(tt.user), tt.want)
			}
		})
	}
}

func expectProblem(g Gomega, err error, want string) {
	if want == "" {
		g.Expect(err).NotTo(HaveOccurred())
	} else {
		g.Expect(err).To(MatchError(ContainSubstring(want)))
	}
}

func TestJudge_agreesWithKstatus(t *testing.T) {
	g := NewWithT(t)
	for want, user := range map[string]*v1alpha1.User{
		"Current":          seen(4, condition("Ready", metav1.ConditionTrue, "Ready", "", 4)),
		"Current, settled": seen(4, condition("Ready", metav1.ConditionTrue, "Expired", "at noon", 4)),
		"InProgress":       seen(4, condition("Ready", metav1.ConditionFalse, "A", "b", 4), condition("Reconciling", metav1.ConditionTrue, "A", "b", 4)),
		"Failed":           seen(4, condition("Ready", metav1.ConditionFalse, "A", "b", 4), condition("Stalled", metav1.ConditionTrue, "A", "b", 4)),
	} {
		judged, err := judge(user)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(want).To(HavePrefix(judged.String()))
	}
	leaving := seen(4, condition("Ready", metav1.ConditionTrue, "Ready", "", 4))
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	g.Expect(checkStatus(leaving)).To(Succeed())
}

func TestState_isRecognized(t *testing.T) {
	isReady := seen(4, condition("Ready", metav1.ConditionTrue, "Ready", "", 4))
	isStalled := seen(4, condition("Ready", metav1.ConditionFalse, "Taken", "by bob", 4), condition("Stalled", metav1.ConditionTrue, "Taken", "by bob", 4))
	isWaiting := seen(4, condition("Ready", metav1.ConditionFalse, "Absent", "who", 4), condition("Reconciling", metav1.ConditionTrue, "Absent", "who", 4))
	isSettled := seen(4, condition("Ready", metav1.ConditionTrue, "Expired", "at noon", 4))
	tests := map[string]struct {
		user *v1alpha1.User
		is   state
		want string
	}{
		"ready":                               {isReady, state{kind: ready}, ""},
		"stalled":                             {isStalled, state{stalled, "Taken", []string{"by", "bob"}}, ""},
		"waiting":                             {isWaiting, state{waiting, "Absent", nil}, ""},
		"failing looks like waiting":          {isWaiting, state{failing, "Absent", nil}, ""},
		"settled":                             {isSettled, state{ended, "Expired", []string{"noon"}}, ""},
		"settled instead of ready":            {isSettled, state{kind: ready}, "it is settled, not ready: Expired: at noon"},
		"ready instead of settled":            {isReady, state{ended, "Ready", nil}, "it is ready, not settled"},
		"stalled instead of ready":            {isStalled, state{kind: ready}, "it is stalled, not ready: Taken: by bob"},
		"ready instead of stalled":            {isReady, state{stalled, "Taken", nil}, "it is ready, not stalled"},
		"waiting instead of stalled":          {isWaiting, state{stalled, "Absent", nil}, "it is waiting, not stalled"},
		"stalled instead of failing":          {isStalled, state{failing, "Taken", nil}, "it is stalled, not failing"},
		"with another reason":                 {isStalled, state{stalled, "Revoked", nil}, "the reason is Taken, not Revoked"},
		"without an expected word":            {isStalled, state{stalled, "Taken", []string{"by", "eve"}}, `the message does not say "eve"`},
		"before a controller has observed it": {seen(-1), state{kind: ready}, "observedGeneration is -1 of 4"},
		"of an earlier generation":            {seen(3, condition("Ready", metav1.ConditionTrue, "Ready", "", 3)), state{kind: ready}, "observedGeneration is 3 of 4"},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) { expectProblem(NewWithT(t), tt.is.of(tt.user), tt.want) })
	}
}

// silence answers every request with an empty body, and keeps the bodies of the requests.
type silence struct{ bodies []string }

func (s *silence) RoundTrip(r *http.Request) (*http.Response, error) {
	text := ""
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		text = string(body)
	}
	s.bodies = append(s.bodies, text)
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
}

func TestWrites_areRecorded(t *testing.T) {
	g := NewWithT(t)
	var w Writes
	s := &silence{}
	c := http.Client{Transport: w.wrap(s)}
	for _, r := range []struct{ method, path, body string }{
		{http.MethodGet, "/apis/a", ""}, {http.MethodHead, "/apis/a", ""}, {http.MethodPost, "/apis/a", "made"}, {http.MethodPut, "/apis/a/b", "put"},
		{http.MethodPatch, "/apis/a/b/status", "changed"}, {http.MethodDelete, "/apis/a/b", ""}, {http.MethodPost, "/api/v1/namespaces/n/secrets", "hidden"},
	} {
		request, err := http.NewRequestWithContext(t.Context(), r.method, "http://example.org"+r.path, strings.NewReader(r.body))
		g.Expect(err).NotTo(HaveOccurred())
		response, err := c.Do(request)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(response.Body.Close()).To(Succeed())
	}
	g.Expect(w.All()).To(HaveExactElements("POST /apis/a made", "PUT /apis/a/b put", "PATCH /apis/a/b/status changed", HavePrefix("DELETE /apis/a/b"),
		"POST /api/v1/namespaces/n/secrets"))
	g.Expect(s.bodies).To(Equal([]string{"", "", "made", "put", "changed", "", "hidden"}), "what the server gets")
}
