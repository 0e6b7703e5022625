package mergerequests_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/mergerequests"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/note"
)

// approvalWorld is a forge with the public project acme/web (20), whose merge request 1 has the head head and no conflicts. Its author ann, dan and
// dora are Developers of web, rick is a Reporter, and otto has no role. rick is also a Developer of the private group lab (11).
type approvalWorld struct {
	*familytest.Forge
	g  *WithT
	t  *testing.T
	id int64
	in types.UID
}

var head = strings.Repeat("a", 40)

func newApprovalWorld(t *testing.T) *approvalWorld {
	t.Helper()
	w := &approvalWorld{Forge: familytest.New(t,
		familytest.User("root", 1, familytest.Admin), familytest.User("ann", 2), familytest.User("dan", 3), familytest.User("dora", 4),
		familytest.User("rick", 5), familytest.User("otto", 6),
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic), familytest.Group("lab", "lab", 11, "", v1alpha1.VisibilityPrivate),
		familytest.Project("acme", "web", 20, "acme", v1alpha1.VisibilityPublic),
		familytest.InProject("acme", "web", "ann", v1alpha1.RoleDeveloper), familytest.InProject("acme", "web", "dan", v1alpha1.RoleDeveloper),
		familytest.InProject("acme", "web", "dora", v1alpha1.RoleDeveloper), familytest.InProject("acme", "web", "rick", v1alpha1.RoleReporter),
		familytest.InGroup("lab", "lab", "rick", v1alpha1.RoleDeveloper), familytest.InGroup("lab", "lab", "dan", v1alpha1.RoleReporter),
	), g: NewWithT(t), t: t}
	w.Activity = familytest.Activity(t, w.Clock)
	in := w.ProjectRow(20)
	m := mergerequest.MergeRequest{In: in, Source: in, SourceBranch: "topic", TargetBranch: "main", Title: "Mend", Author: w.UserRow("ann")}
	w.g.Expect(w.Activity.MergeRequests.Create(t.Context(), &m)).To(Succeed())
	w.id, w.in = m.ID, in.UID
	w.push(head)
	w.change(func(m *mergerequest.MergeRequest) { m.MergeStatus = mergerequest.CanBeMerged })
	w.Serve(mergerequests.New(w.Kit).Table())
	return w
}

func (w *approvalWorld) push(head string) {
	w.t.Helper()
	v := mergerequest.Version{MergeRequestID: w.id, Head: head, Base: strings.Repeat("b", 40), Start: strings.Repeat("b", 40)}
	w.g.Expect(w.Activity.MergeRequests.AddVersion(w.t.Context(), &v, "1")).To(Succeed())
}

func (w *approvalWorld) change(change func(*mergerequest.MergeRequest)) {
	w.t.Helper()
	_, err := w.Activity.MergeRequests.Update(w.t.Context(), w.in, 1, func(m *mergerequest.MergeRequest) error {
		change(m)
		return nil
	})
	w.g.Expect(err).NotTo(HaveOccurred())
}

const (
	underApproval = "/projects/20/merge_requests/1"
	unauthorized  = `401 {"message":"401 Unauthorized"}`
)

// reviewed has the fields of approvals that the tests check.
type reviewed struct {
	Approved    bool
	Required    int64 `json:"approvals_required"`
	Left        int64 `json:"approvals_left"`
	HasApproved bool  `json:"user_has_approved"`
	CanApprove  bool  `json:"user_can_approve"`
	ApprovedBy  []struct {
		User       named
		ApprovedAt string `json:"approved_at"`
	} `json:"approved_by"`
	Suggested []named    `json:"suggested_approvers"`
	RulesLeft []approval `json:"approval_rules_left"`
}

type named struct{ Username string }

// approval is an approval rule as it is decoded.
type approval struct {
	ID       int64
	Name     string
	RuleType string  `json:"rule_type"`
	Eligible []named `json:"eligible_approvers"`
	Required int64   `json:"approvals_required"`
	Users    []named
	Groups   []struct {
		FullPath string `json:"full_path"`
	}
	Hidden     bool `json:"contains_hidden_groups"`
	Approved   bool
	ApprovedBy []named `json:"approved_by"`
}

func (w *approvalWorld) approvals(as string) reviewed {
	w.t.Helper()
	return familytest.Decode[reviewed](w.t, w.As(as, "GET "+underApproval+"/approvals", ""))
}

func (w *approvalWorld) addRule(body string) approval {
	w.t.Helper()
	answer := w.As("dan", "POST "+underApproval+"/approval_rules", body)
	w.g.Expect(answer.Code).To(Equal(201), answer.Body)
	return familytest.Decode[approval](w.t, answer)
}

func TestApprove_recordsApproval(t *testing.T) {
	w := newApprovalWorld(t)
	w.g.Expect(w.approvals("")).To(And(HaveField("Approved", true), HaveField("ApprovedBy", BeEmpty()), HaveField("CanApprove", false)))
	w.g.Expect(w.approvals("dan")).To(And(HaveField("CanApprove", true), HaveField("HasApproved", false)))
	answer := w.As("dan", "POST "+underApproval+"/approve", fmt.Sprintf(`{"sha":%q}`, head))
	w.g.Expect(answer.Code).To(Equal(201), answer.Body)
	for _, got := range []reviewed{familytest.Decode[reviewed](t, answer), w.approvals("dan")} {
		w.g.Expect(got).To(And(HaveField("HasApproved", true), HaveField("CanApprove", false)))
		w.g.Expect(got.ApprovedBy).To(HaveExactElements(And(HaveField("User.Username", "dan"), HaveField("ApprovedAt", "2026-06-15T12:00:00.000Z"))))
	}
	recorded := func() (bodies []string) {
		of, _, err := w.Activity.Notes.List(t.Context(), database.Item{Kind: mergerequest.Kind, ID: w.id}, note.Query{Kinds: note.System, Ascending: true, Limit: 9})
		w.g.Expect(err).NotTo(HaveOccurred())
		for _, n := range of {
			bodies = append(bodies, n.Body)
		}
		return bodies
	}
	w.g.Expect(recorded()).To(Equal([]string{"approved this merge request"}))

	w.g.Expect(w.As("dora", "POST "+underApproval+"/unapprove", "").String()).To(Equal(`404 {"message":"404 Not found"}`))
	w.g.Expect(w.As("dan", "POST "+underApproval+"/unapprove", "").Code).To(Equal(201))
	w.g.Expect(w.approvals("dan")).To(And(HaveField("ApprovedBy", BeEmpty()), HaveField("CanApprove", true)))
	w.g.Expect(recorded()).To(Equal([]string{"approved this merge request", "unapproved this merge request"}))
}

func TestApprove_refuses(t *testing.T) {
	w := newApprovalWorld(t)
	w.g.Expect(w.As("dan", "POST "+underApproval+"/approve", "").Code).To(Equal(201))
	for _, as := range []string{"", "ann", "dan", "rick", "otto"} {
		w.g.Expect(w.As(as, "POST "+underApproval+"/approve", "").String()).To(Equal(unauthorized), as)
	}
	const other = "0123456789012345678901234567890123456789"
	w.g.Expect(w.As("dora", "POST "+underApproval+"/approve", fmt.Sprintf(`{"sha":%q}`, other)).String()).
		To(Equal(`409 {"message":"SHA does not match HEAD of source branch: ` + head + `"}`))
	w.g.Expect(w.As("dora", "POST /projects/20/merge_requests/9/approve", "").String()).To(Equal(`404 {"message":"404 Not found"}`))
	w.change(func(m *mergerequest.MergeRequest) { m.State = mergerequest.Merged })
	w.g.Expect(w.As("dora", "POST "+underApproval+"/approve", "").String()).To(Equal(unauthorized))
	w.g.Expect(w.As("dan", "POST "+underApproval+"/unapprove", "").String()).To(Equal(unauthorized))
	w.g.Expect(w.approvals("").ApprovedBy).To(HaveLen(1))
}

func TestApproval_lapsesWithPush(t *testing.T) {
	w := newApprovalWorld(t)
	w.g.Expect(w.As("dan", "POST "+underApproval+"/approve", "").Code).To(Equal(201))
	w.push(head)
	w.g.Expect(w.approvals("").ApprovedBy).To(HaveLen(1))
	w.push(strings.Repeat("c", 40))
	w.g.Expect(w.approvals("").ApprovedBy).To(BeEmpty())
}

func TestApprovalRule_holdsBackMergeRequest(t *testing.T) {
	w := newApprovalWorld(t)
	left := func() int64 { return w.approvals("").Left }
	w.g.Expect(left()).To(BeZero())
	made := w.addRule(`{"name":"Security","approvals_required":1,"user_ids":[5]}`)
	w.g.Expect(made).To(And(HaveField("RuleType", "regular"), HaveField("Users", Equal([]named{{"rick"}})), HaveField("Approved", false)))
	w.g.Expect(left()).To(BeEquivalentTo(1))
	w.g.Expect(w.approvals("dan")).To(And(HaveField("Approved", false), HaveField("Required", int64(1)), HaveField("Left", int64(1)),
		HaveField("Suggested", Equal([]named{{"rick"}})), HaveField("RulesLeft", HaveExactElements(HaveField("Name", "Security")))))
	w.g.Expect(w.As("dan", "POST "+underApproval+"/approve", "").Code).To(Equal(201))
	w.g.Expect(left()).To(BeEquivalentTo(1), "dan is not an approver of the rule")
	w.g.Expect(w.As("rick", "POST "+underApproval+"/approve", "").Code).To(Equal(201), "an approver needs no role")
	w.g.Expect(left()).To(BeZero())
	state := familytest.Decode[struct {
		Overwritten bool `json:"approval_rules_overwritten"`
		Rules       []approval
	}](t, w.As("", "GET "+underApproval+"/approval_state", ""))
	w.g.Expect(state.Overwritten).To(BeTrue())
	w.g.Expect(state.Rules).To(HaveExactElements(And(HaveField("Approved", true), HaveField("ApprovedBy", Equal([]named{{"rick"}})))))

	anybody := w.addRule(`{"name":"Anybody","approvals_required":3}`)
	w.g.Expect(anybody).To(And(HaveField("RuleType", "any_approver"), HaveField("ApprovedBy", HaveLen(2)), HaveField("Approved", false)))
	one := fmt.Sprintf("%s/approval_rules/%d", underApproval, anybody.ID)
	w.g.Expect(w.As("dan", "PUT "+one, `{"approvals_required":2}`).Code).To(Equal(200))
	w.g.Expect(left()).To(BeZero())
}

func TestApprovalRule_ofGroupHidesMembers(t *testing.T) {
	w := newApprovalWorld(t)
	made := w.addRule(`{"name":"Lab","approvals_required":1,"group_ids":[11]}`)
	w.g.Expect(made.Groups).To(HaveExactElements(HaveField("FullPath", "lab")))
	w.g.Expect(made.Eligible).To(Equal([]named{{"rick"}}), "dan is only a Reporter of the group")
	one := fmt.Sprintf("%s/approval_rules/%d", underApproval, made.ID)
	w.g.Expect(familytest.Decode[approval](t, w.As("otto", "GET "+one, ""))).To(And(HaveField("Groups", BeEmpty()), HaveField("Eligible", BeEmpty()), HaveField("Hidden", true)))
	w.g.Expect(w.As("dan", "POST "+underApproval+"/approve", "").Code).To(Equal(201))
	w.g.Expect(w.approvals("").Left).To(BeEquivalentTo(1))
	w.g.Expect(w.As("rick", "POST "+underApproval+"/approve", "").Code).To(Equal(201))
	w.g.Expect(w.approvals("").Left).To(BeZero())
}

func TestApprovalRule_isManagedByDevelopers(t *testing.T) {
	w := newApprovalWorld(t)
	made := w.addRule(`{"name":"First","approvals_required":1,"user_ids":[5,4]}`)
	rules := underApproval + "/approval_rules"
	one := fmt.Sprintf("%s/%d", rules, made.ID)
	const forbidden, taken = `403 {"message":"403 Forbidden"}`, `400 {"message":{"name":["has already been taken"]}}`
	for _, tt := range []struct{ as, request, body, want string }{
		{"", "POST " + rules, `{"name":"x","approvals_required":1}`, unauthorized}, {"rick", "POST " + rules, `{"name":"x","approvals_required":1}`, forbidden},
		{"rick", "PUT " + one, `{"name":"x"}`, forbidden}, {"rick", "DELETE " + one, "", forbidden},
		{"dan", "POST " + rules, `{}`, `400 {"error":"name is missing, approvals_required is missing"}`},
		{"dan", "POST " + rules, `{"name":" ","approvals_required":1}`, `400 {"error":"name is empty"}`},
		{"dan", "POST " + rules, `{"name":"x","approvals_required":-1}`, `400 {"error":"approvals_required does not have a valid value"}`},
		{"dan", "POST " + rules, `{"name":"First","approvals_required":1}`, taken},
		{"dan", "POST " + rules, `{"name":"x","approvals_required":1,"user_ids":[99]}`, `400 {"message":{"user_ids":["has 99, which is not the id of a user who sees the project"]}}`},
		{"dora", "POST " + rules, `{"name":"x","approvals_required":1,"group_ids":[11]}`, `404 {"message":"404 Group Not Found"}`},
		{"dan", "PUT " + rules + "/99", `{"name":"x"}`, `404 {"message":"404 Not found"}`}, {"dan", "GET " + rules + "/99", "", `404 {"message":"404 Not found"}`},
		{"dan", "DELETE " + rules + "/99", "", `404 {"message":"404 Not found"}`},
	} {
		w.g.Expect(w.As(tt.as, tt.request, tt.body).String()).To(Equal(tt.want), "%s %s %s", tt.as, tt.request, tt.body)
	}
	changed := familytest.Decode[approval](t, w.As("dora", "PUT "+one, `{"name":"Renamed","user_ids":[4]}`))
	w.g.Expect(changed).To(And(HaveField("Name", "Renamed"), HaveField("Required", int64(1)), HaveField("Users", Equal([]named{{"dora"}}))))
	w.g.Expect(familytest.Decode[[]approval](t, w.As("", "GET "+rules, ""))).To(Equal([]approval{changed}))
	w.g.Expect(w.As("dora", "DELETE "+one, "").String()).To(Equal("204"))
	w.g.Expect(w.As("", "GET "+rules, "").String()).To(Equal("200 []"))
}

func TestApprovalRule_isLimited(t *testing.T) {
	w := newApprovalWorld(t)
	rules := underApproval + "/approval_rules"
	ids := func(n int) string { return strings.TrimSuffix(strings.Repeat("11,", n), ",") }
	made := w.addRule(`{"name":"0","approvals_required":0,"group_ids":[` + ids(10) + `]}`)
	for _, request := range []string{"POST " + rules, fmt.Sprintf("PUT %s/%d", rules, made.ID)} {
		w.g.Expect(w.As("dan", request, `{"name":"x","approvals_required":0,"group_ids":[`+ids(11)+`]}`).String()).
			To(Equal(`400 {"message":{"group_ids":["are too many (maximum is 10)"]}}`))
		w.g.Expect(w.As("dan", request, `{"name":"x","approvals_required":0,"user_ids":[`+ids(101)+`]}`).String()).
			To(Equal(`400 {"message":{"user_ids":["are too many (maximum is 100)"]}}`))
	}
	for n := range 19 {
		w.addRule(fmt.Sprintf(`{"name":"%d","approvals_required":0}`, n+1))
	}
	w.g.Expect(w.As("dan", "POST "+rules, `{"name":"x","approvals_required":0}`).String()).To(Equal(`400 {"message":{"rules":["are too many (maximum is 20)"]}}`))
	page := familytest.Decode[[]approval](t, w.As("", "GET "+rules+"?per_page=2&page=10", ""))
	w.g.Expect(page).To(HaveExactElements(HaveField("Name", "18"), HaveField("Name", "19")))
}

func TestShow_saysWhetherDiscussionsAreResolved(t *testing.T) {
	w := newApprovalWorld(t)
	n := note.Note{
		In: database.Subject{Kind: database.KindProject, ID: 20, UID: w.in}, On: database.Item{Kind: mergerequest.Kind, ID: w.id}, Body: "Why?", Resolvable: true,
	}
	w.g.Expect(w.As("", "GET "+underApproval, "").Body).To(ContainSubstring(`"blocking_discussions_resolved":true`))
	w.g.Expect(w.Activity.Notes.Create(t.Context(), &n)).To(Succeed())
	w.g.Expect(w.As("", "GET "+underApproval, "").Body).To(ContainSubstring(`"blocking_discussions_resolved":false`))
}
