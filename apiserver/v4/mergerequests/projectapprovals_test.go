package mergerequests_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/mergerequests"
	"github.com/forgeplane/forgeplane/internal/feature"
)

const approvalSettings, projectRules = "/projects/20/approvals", "/projects/20/approval_rules"

// configure sends settings of approvals as an administrator.
func (w *approvalWorld) configure(settings string) {
	w.t.Helper()
	w.g.Expect(w.As("root", "POST "+approvalSettings, settings).Code).To(Equal(201))
}

func (w *approvalWorld) approve(as string) int {
	w.t.Helper()
	return w.As(as, "POST "+underApproval+"/approve", "").Code
}

func TestApprovalSettings_belongToProject(t *testing.T) {
	w := newApprovalWorld(t)
	const before = `{"approvers":[],"approver_groups":[],"approvals_before_merge":0,"reset_approvals_on_push":true,"selective_code_owner_removals":false,` +
		`"disable_overriding_approvers_per_merge_request":false,"merge_requests_author_approval":false,"merge_requests_disable_committers_approval":false,` +
		`"require_password_to_approve":false,"require_reauthentication_to_approve":false}`
	const after = `{"approvers":[],"approver_groups":[],"approvals_before_merge":2,"reset_approvals_on_push":false,"selective_code_owner_removals":false,` +
		`"disable_overriding_approvers_per_merge_request":true,"merge_requests_author_approval":true,"merge_requests_disable_committers_approval":true,` +
		`"require_password_to_approve":false,"require_reauthentication_to_approve":false}`
	for _, tt := range []struct{ as, request, body, want string }{
		{"", "GET " + approvalSettings, "", unauthorized},
		{"otto", "GET " + approvalSettings, "", "200 " + before},
		{"dan", "POST " + approvalSettings, `{"approvals_before_merge":1}`, `403 {"message":"403 Forbidden"}`},
		{"root", "POST " + approvalSettings, `{"approvals_before_merge":101}`, `400 {"error":"approvals_before_merge does not have a valid value"}`},
		{"root", "POST " + approvalSettings, `{"selective_code_owner_removals":true}`, `400 {"message":{"selective_code_owner_removals":["is not supported"]}}`},
		{"root", "POST " + approvalSettings, `{"approvals_before_merge":2,"reset_approvals_on_push":false,"disable_overriding_approvers_per_merge_request":true,` +
			`"merge_requests_author_approval":true,"merge_requests_disable_committers_approval":true,"require_password_to_approve":false}`, "201 " + after},
		{"dan", "GET " + approvalSettings, "", "200 " + after},
		{"root", "POST " + approvalSettings, `{"require_password_to_approve":false}`, "201 " + after},
	} {
		w.g.Expect(w.As(tt.as, tt.request, tt.body).String()).To(Equal(tt.want), "%s %s %s", tt.as, tt.request, tt.body)
	}
}

func TestApprovalSettings_askForApprovals(t *testing.T) {
	w := newApprovalWorld(t)
	w.Feature(feature.MergeRequestApprovedFilter, true)
	approved := func() string {
		return fmt.Sprint(len(familytest.Decode[[]struct{ ID int64 }](t, w.As("dan", "GET /projects/20/merge_requests?approved=yes", ""))))
	}
	w.g.Expect(approved()).To(Equal("1"))
	w.configure(`{"approvals_before_merge":2}`)
	w.g.Expect(w.approvals("")).To(And(HaveField("Required", int64(2)), HaveField("Left", int64(2)), HaveField("Approved", false)))
	w.g.Expect([]int{w.approve("dan"), w.approve("ann")}).To(Equal([]int{201, 401}), "ann is the author")
	w.g.Expect(approved()).To(Equal("0"))
	w.configure(`{"merge_requests_author_approval":true}`)
	w.g.Expect(w.approve("ann")).To(Equal(201))
	w.g.Expect(w.approvals("").Left).To(BeZero())
	w.g.Expect(approved()).To(Equal("1"))
	w.configure(`{"merge_requests_author_approval":false}`)
	w.g.Expect(w.approvals("").Left).To(BeEquivalentTo(1), "the approval does not count any more")
	w.g.Expect(approved()).To(Equal("0"))
}

func TestList_limitsRequirementsOfProjects(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	w.Feature(feature.MergeRequestApprovedFilter, true)
	for n, want := range map[int]int{499: 200, 500: 400} {
		w.configure(func(s *v1alpha1.MergeRequests) { s.Approvals.Rules = make([]v1alpha1.ApprovalRule, n) })
		g.Expect(w.As("rita", "GET /projects/20/merge_requests?approved=yes", "").Code).To(Equal(want), "%d rules", n)
	}
}

func TestApprovalSettings_refuseRulesOfMergeRequests(t *testing.T) {
	w := newApprovalWorld(t)
	made := w.addRule(`{"name":"Security","approvals_required":1,"user_ids":[5]}`)
	w.configure(`{"disable_overriding_approvers_per_merge_request":true}`)
	const forbidden = `403 {"message":"403 Forbidden"}`
	one := fmt.Sprintf("%s/approval_rules/%d", underApproval, made.ID)
	w.g.Expect(w.As("dan", "POST "+underApproval+"/approval_rules", `{"name":"x","approvals_required":0}`).String()).To(Equal(forbidden))
	w.g.Expect(w.As("dan", "PUT "+one, `{"approvals_required":0}`).String()).To(Equal(forbidden))
	w.g.Expect(w.As("dan", "DELETE "+one, "").String()).To(Equal(forbidden))
	w.g.Expect(w.approvals("").Left).To(BeEquivalentTo(1))
}

func TestProjectRules_applyToMergeRequests(t *testing.T) {
	w := newApprovalWorld(t)
	made := familytest.Decode[approval](t, w.As("root", "POST "+projectRules, `{"name":"Security","approvals_required":1,"user_ids":[5],"group_ids":[11]}`))
	w.g.Expect(made).To(And(HaveField("RuleType", "regular"), HaveField("Users", Equal([]named{{"rick"}})), HaveField("Groups", HaveLen(1))))
	one := fmt.Sprintf("/%d", made.ID)
	w.g.Expect(familytest.Decode[approval](t, w.As("root", "GET "+projectRules+one, ""))).To(Equal(made))
	w.g.Expect(familytest.Decode[[]approval](t, w.As("otto", "GET "+projectRules, ""))).To(HaveExactElements(
		And(HaveField("Groups", BeEmpty()), HaveField("Hidden", true))))

	type sourced struct {
		approval
		Source *approval `json:"source_rule"`
	}
	w.addRule(`{"name":"Own","approvals_required":0}`)
	rules := familytest.Decode[[]sourced](t, w.As("dan", "GET "+underApproval+"/approval_rules", ""))
	w.g.Expect(rules).To(HaveExactElements(
		And(HaveField("ID", made.ID), HaveField("Source", HaveValue(And(HaveField("ID", made.ID), HaveField("Name", "Security"), HaveField("Required", int64(1)))))),
		And(HaveField("Name", "Own"), HaveField("Source", BeNil()))))
	w.g.Expect(w.As("dan", "DELETE "+underApproval+"/approval_rules"+one, "").String()).To(Equal(`403 {"message":"403 Forbidden"}`))
	w.g.Expect(w.As("dan", "PUT "+underApproval+"/approval_rules"+one, `{"approvals_required":0}`).String()).To(Equal(`403 {"message":"403 Forbidden"}`))

	w.g.Expect(w.approve("dan")).To(Equal(201))
	w.g.Expect(w.approvals("").Left).To(BeEquivalentTo(1), "dan is not an approver of the rule")
	w.g.Expect(w.approve("rick")).To(Equal(201))
	w.g.Expect(w.approvals("").Left).To(BeZero())
	var rick v1alpha1.User
	w.Refer(&rick, "rick")
	w.g.Expect(w.Client.Delete(t.Context(), &rick)).To(Succeed())
	w.g.Expect(w.As("root", "PUT "+projectRules+one, `{"group_ids":[]}`).Code).To(Equal(200))
	w.g.Expect(w.approvals("").Left).To(BeEquivalentTo(1), "the only approver is gone")
}

func TestProjectRules_areManagedByMaintainers(t *testing.T) {
	w := newApprovalWorld(t)
	add := func(name string) approval {
		return familytest.Decode[approval](t, w.As("root", "POST "+projectRules, `{"name":"`+name+`","approvals_required":0}`))
	}
	first, second := add("First"), add("Second")
	w.g.Expect(first).To(And(HaveField("RuleType", "any_approver"), HaveField("ID", Not(Equal(second.ID)))))
	one := fmt.Sprintf("%s/%d", projectRules, first.ID)
	const forbidden, missing, taken = `403 {"message":"403 Forbidden"}`, `404 {"message":"404 Not found"}`, `400 {"message":{"name":["has already been taken"]}}`
	for _, tt := range []struct{ as, request, body, want string }{
		{"", "GET " + projectRules, "", unauthorized}, {"", "GET " + one, "", unauthorized},
		{"dan", "POST " + projectRules, `{"name":"x","approvals_required":1}`, forbidden},
		{"dan", "PUT " + one, `{"name":"x"}`, forbidden}, {"dan", "DELETE " + one, "", forbidden},
		{"root", "POST " + projectRules, `{}`, `400 {"error":"name is missing, approvals_required is missing"}`},
		{"root", "POST " + projectRules, `{"name":"First","approvals_required":1}`, taken},
		{"root", "PUT " + one, `{"name":"Second"}`, taken},
		{"root", "GET " + projectRules + "/1", "", missing}, {"root", "PUT " + projectRules + "/1", `{"name":"x"}`, missing}, {"root", "DELETE " + projectRules + "/1", "", missing},
	} {
		w.g.Expect(w.As(tt.as, tt.request, tt.body).String()).To(Equal(tt.want), "%s %s %s", tt.as, tt.request, tt.body)
	}
	renamed := familytest.Decode[approval](t, w.As("root", "PUT "+one, `{"name":"Renamed","user_ids":[4]}`))
	w.g.Expect(renamed).To(And(HaveField("ID", first.ID), HaveField("Name", "Renamed"), HaveField("Users", Equal([]named{{"dora"}}))))
	again := add("First")
	w.g.Expect(again.ID).NotTo(Equal(first.ID))
	w.g.Expect(w.As("root", "DELETE "+one, "").String()).To(Equal("204"))
	w.g.Expect(w.As("root", "DELETE "+one, "").String()).To(Equal(missing), "another rule never gets the id")
	w.g.Expect(familytest.Decode[approval](t, w.As("root", fmt.Sprintf("GET %s/%d", projectRules, again.ID), "")).Name).To(Equal("First"))
	w.g.Expect(familytest.Decode[[]approval](t, w.As("dan", "GET "+projectRules+"?per_page=1&page=2", ""))).To(HaveExactElements(HaveField("Name", "First")))
}

func TestApprovals_stayWithPushIfProjectKeepsThem(t *testing.T) {
	for keep, want := range map[bool]int{true: 1, false: 0} {
		g, w := NewWithT(t), newGitWorld(t, branched(t))
		w.configure(func(s *v1alpha1.MergeRequests) { s.Approvals.KeepOnPush = keep })
		m := w.request(20, "topic", "main")
		w.approved(m, "mary")
		w.web.Git(t, "update-ref", "refs/heads/topic", w.commit("topic", "topic"))
		w.get(m)
		g.Expect(w.Activity.MergeRequests.Approvals(t.Context(), m.ID)).To(HaveLen(want), "kept: %t", keep)
	}
}

func TestCreate_asksForApprovals(t *testing.T) {
	for refused, want := range map[bool]int64{false: 2, true: 0} {
		g, w := NewWithT(t), newGitWorld(t, branched(t))
		w.configure(func(s *v1alpha1.MergeRequests) { s.Approvals.RefuseOverrides = refused })
		made := familytest.Decode[mergerequests.Detailed](t, w.As("dora", "POST /projects/20/merge_requests",
			`{"title":"x","source_branch":"topic","target_branch":"main","approvals_before_merge":2}`))
		shown := int64(0)
		if made.ApprovalsBeforeMerge != nil {
			shown = *made.ApprovalsBeforeMerge
		}
		g.Expect(shown).To(Equal(want))
		g.Expect(familytest.Decode[reviewed](t, w.As("dora", "GET /projects/20/merge_requests/1/approvals", "")).Left).To(Equal(want))
	}
}
