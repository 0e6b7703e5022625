package conformance

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// refusal is a request that is refused. Placeholders in its path and body, such as {project}, {path}, {secret}, {group}, {hidden} and {rule}, refer
// to the objects that newVictims creates.
type refusal struct {
	who           *person
	request, body string
	want          string
}

// aboutParameters are errors in the form of parameters (API behaviour, section 1.1).
var aboutParameters = []refusal{
	{root, "POST users", `{}`, `400 {"error":"email is missing, name is missing, username is missing"}`},
	{root, "POST users", `{"name":"x","username":"x"}`, `400 {"error":"email is missing"}`},
	{root, "POST users/{guest}/personal_access_tokens", `{"scopes":["api"]}`, `400 {"error":"name is missing"}`},
	{root, "POST users/{guest}/personal_access_tokens", `{"name":"x"}`, `400 {"error":"scopes is missing"}`},
	{root, "POST users/{guest}/personal_access_tokens", `{"name":"x","scopes":["everything"]}`, `400 {"error":"scopes does not have a valid value"}`},
	{root, "GET users?order_by=shoe_size", ``, `400 {"error":"order_by does not have a valid value"}`},
	{root, "GET users/somebody", ``, `400 {"error":"id is invalid"}`},
	{owner, "POST groups", `{}`, `400 {"error":"name is missing, path is missing"}`},
	{owner, "POST groups", `{"name":"","path":"x"}`, `400 {"error":"name is empty"}`},
	{owner, "POST groups", `{"name":"x","path":"x","visibility":"secret"}`, `400 {"error":"visibility does not have a valid value"}`},
	{owner, "POST groups", `{"name":"x","path":"x","parent_id":"above"}`, `400 {"error":"parent_id is invalid"}`},
	{owner, "POST projects", `{}`, `400 {"error":"name, path are missing, at least one parameter must be provided"}`},
	{owner, "POST projects", `{"name":"x","namespace_id":true}`, `400 {"error":"namespace_id is invalid"}`},
	{owner, "PUT projects/{project}", `{}`, `400 {"error":"name, path, description, visibility, default_branch, repository_access_level, container_registry_access_level, squash_option, only_allow_merge_if_pipeline_succeeds, allow_merge_on_skipped_pipeline, public_jobs, keep_latest_artifact, avatar, topics, tag_list are missing, at least one parameter must be provided"}`},
	{owner, "PUT projects/{project}", `{"container_registry_access_level":"public"}`, `400 {"error":"container_registry_access_level does not have a valid value"}`},
	{owner, "GET projects?owned=perhaps", ``, `400 {"error":"owned is invalid"}`},
	{owner, "GET projects?min_access_level=41", ``, `400 {"error":"min_access_level does not have a valid value"}`},
	{owner, "GET projects?pagination=none", ``, `400 {"error":"pagination does not have a valid value"}`},
	{owner, "GET projects?per_page=0", ``, `400 {"error":"per_page has a value not allowed"}`},
	{owner, "GET projects?per_page=many", ``, `400 {"error":"per_page is invalid"}`},
	{owner, "GET projects?page=1.5", ``, `400 {"error":"page is invalid"}`},
	{owner, "GET projects?per_page=x&page=y", ``, `400 {"error":"page is invalid, per_page is invalid"}`},
	{owner, "POST projects/{project}/members", `{"access_level":30}`, `400 {"error":"user_id, username are missing, at least one parameter must be provided"}`},
	{owner, "POST projects/{project}/members", `{"access_level":30,"user_id":1,"username":"x"}`, `400 {"error":"user_id, username are mutually exclusive"}`},
	{owner, "POST projects/{project}/members", `{"user_id":1}`, `400 {"error":"access_level is missing"}`},
	{owner, "PUT groups/{group}/members/{guest}", `{"access_level":"high"}`, `400 {"error":"access_level is invalid"}`},
	{owner, "GET groups/{group}/members/somebody", ``, `400 {"error":"user_id is invalid"}`},
	{maintainer, "POST projects/{project}/deploy_keys", `{"title":"x"}`, `400 {"error":"key is missing"}`},
	{maintainer, "POST projects/{project}/deploy_keys", `{}`, `400 {"error":"title is missing, key is missing"}`},
	{maintainer, "PUT projects/{project}/deploy_keys/{key}", `{}`, `400 {"error":"title, can_push are missing, at least one parameter must be provided"}`},
	{maintainer, "POST projects/{project}/remote_mirrors", `{}`, `400 {"error":"url is missing"}`},
	{maintainer, "POST projects/{project}/remote_mirrors", `{"url":"https://example.com/x","enabled":"maybe"}`, `400 {"error":"enabled is invalid"}`},
	{maintainer, "POST projects/{project}/remote_mirrors", `{"url":"https://example.com/x","only_protected_branches":true,"mirror_branch_regex":"x"}`, `400 {"error":"only_protected_branches, mirror_branch_regex are mutually exclusive"}`},
	{maintainer, "PUT projects/{project}/remote_mirrors/{mirror}", `{"keep_divergent_refs":"maybe"}`, `400 {"error":"keep_divergent_refs is invalid"}`},
	{maintainer, "GET projects/{project}/remote_mirrors/first", ``, `400 {"error":"mirror_id is invalid"}`},
	{maintainer, "POST projects/{project}/protected_branches", `{}`, `400 {"error":"name is missing"}`},
	{maintainer, "POST projects/{project}/protected_branches", `{"name":" "}`, `400 {"error":"name is empty"}`},
	{maintainer, "POST projects/{project}/protected_branches", `{"name":"x","push_access_level":20}`, `400 {"error":"push_access_level does not have a valid value"}`},
	{maintainer, "POST projects/{project}/protected_branches", `{"name":"x","merge_access_level":50}`, `400 {"error":"merge_access_level does not have a valid value"}`},
	{maintainer, "POST projects/{project}/protected_branches", `{"name":"x","unprotect_access_level":0}`, `400 {"error":"unprotect_access_level does not have a valid value"}`},
	{maintainer, "POST projects/{project}/protected_branches", `{"name":"x","push_access_level":"most"}`, `400 {"error":"push_access_level is invalid"}`},
	{maintainer, "POST projects/{project}/protected_branches", `{"name":"x","allowed_to_push":[{"access_level":1}]}`, `400 {"error":"allowed_to_push[0][access_level] does not have a valid value"}`},
	{maintainer, "POST projects/{project}/protected_branches", `{"name":"x","allowed_to_push":[{"access_level":40,"user_id":{member}}]}`, `400 {"error":"access_level, user_id are mutually exclusive"}`},
	{maintainer, "PATCH projects/{project}/protected_branches/{rule}", `{"allow_force_push":""}`, `400 {"error":"allow_force_push is empty"}`},
	{maintainer, "PATCH projects/{project}/protected_branches/{rule}", `{"allow_force_push":"maybe"}`, `400 {"error":"allow_force_push is invalid"}`},
	{maintainer, "POST projects/{project}/triggers", `{}`, `400 {"error":"description is missing"}`},
	{maintainer, "POST projects/{project}/triggers", `{"description":[1]}`, `400 {"error":"description is invalid"}`},
	{maintainer, "GET projects/{project}/triggers/nightly", ``, `400 {"error":"trigger_id is invalid"}`},
	{maintainer, "POST projects/{project}/badges", `{}`, `400 {"error":"link_url is missing, image_url is missing"}`},
	{maintainer, "POST projects/{project}/badges", `{"image_url":"https://a"}`, `400 {"error":"link_url is missing"}`},
	{maintainer, "POST projects/{project}/badges", `{"link_url":"https://a"}`, `400 {"error":"image_url is missing"}`},
	{maintainer, "GET projects/{project}/badges/render?link_url=https://a", ``, `400 {"error":"image_url is missing"}`},
	{maintainer, "GET projects/{project}/badges/first", ``, `400 {"error":"badge_id is invalid"}`},
	{maintainer, "PATCH projects/{project}/job_token_scope", `{}`, `400 {"error":"enabled is missing"}`},
	{maintainer, "PATCH projects/{project}/job_token_scope", `{"enabled":null}`, `400 {"error":"enabled is empty"}`},
	{maintainer, "PATCH projects/{project}/job_token_scope", `{"enabled":123}`, `400 {"error":"enabled is invalid"}`},
	{maintainer, "POST projects/{project}/job_token_scope/allowlist", `{}`, `400 {"error":"target_project_id is missing"}`},
	{maintainer, "POST projects/{project}/job_token_scope/allowlist", `{"target_project_id":"{name}"}`, `400 {"error":"target_project_id is invalid"}`},
	{maintainer, "DELETE projects/{project}/job_token_scope/allowlist/{name}", ``, `400 {"error":"target_project_id is invalid"}`},
	{developer, "POST projects/{project}/labels", `{}`, `400 {"error":"name is missing, color is missing"}`},
	{developer, "POST projects/{project}/labels", `{"name":"x"}`, `400 {"error":"color is missing"}`},
	{developer, "POST projects/{project}/labels", `{"color":"red"}`, `400 {"error":"name is missing"}`},
	{developer, "POST projects/{project}/labels", `{"name":"x","color":"red","priority":"high"}`, `400 {"error":"priority is invalid"}`},
	{developer, "PUT projects/{project}/labels/{label}", `{}`, `400 {"error":"new_name, color, description, priority are missing, at least one parameter must be provided"}`},
	{developer, "PUT projects/{project}/labels/{label}", `{"priority":1.5}`, `400 {"error":"priority is invalid"}`},
	{developer, "PUT projects/{project}/labels", `{"color":"red"}`, `400 {"error":"label_id, name are missing, exactly one parameter must be provided"}`},
	{developer, "PUT projects/{project}/labels", `{"color":"red","name":"x","label_id":1}`, `400 {"error":"label_id, name are mutually exclusive"}`},
	{developer, "PUT projects/{project}/labels", `{"name":"x"}`, `400 {"error":"new_name, color, description, priority are missing, at least one parameter must be provided"}`},
	{developer, "DELETE projects/{project}/labels", ``, `400 {"error":"label_id, name are missing, exactly one parameter must be provided"}`},
	{developer, "DELETE projects/{project}/labels?name=x&label_id=1", ``, `400 {"error":"label_id, name are mutually exclusive"}`},
	{developer, "PUT projects/{project}/labels/promote", `{}`, `400 {"error":"name is missing"}`},
	{developer, "GET projects/{project}/labels?with_counts=some", ``, `400 {"error":"with_counts is invalid"}`},
}

// aboutCallers are errors about what callers cannot see, or can see but not do (API behaviour, section 1.2).
var aboutCallers = []refusal{
	{nobody, "GET user", ``, `401 {"message":"401 Unauthorized"}`},
	{nobody, "GET version", ``, `401 {"message":"401 Unauthorized"}`},
	{nobody, "GET metadata", ``, `401 {"message":"401 Unauthorized"}`},
	{nobody, "GET users", ``, `401 {"message":"401 Unauthorized"}`},
	{nobody, "GET namespaces", ``, `401 {"message":"401 Unauthorized"}`},
	{nobody, "GET personal_access_tokens", ``, `401 {"message":"401 Unauthorized"}`},
	{nobody, "POST projects", `{"name":"x"}`, `401 {"message":"401 Unauthorized"}`},
	{nobody, "POST users", `{}`, `401 {"message":"401 Unauthorized"}`},
	{nobody, "GET projects/{secret}", ``, `404 {"message":"404 Project Not Found"}`},
	{nobody, "GET projects/{secret}/protected_branches", ``, `404 {"message":"404 Project Not Found"}`},
	{nobody, "GET groups/{hidden}", ``, `404 {"message":"404 Group Not Found"}`},
	{nobody, "POST projects/{project}/protected_branches", `{"name":"x"}`, `403 {"message":"403 Forbidden"}`},
	{nobody, "POST projects/{secret}/protected_branches", `{"name":"x"}`, `404 {"message":"404 Project Not Found"}`},
	{nobody, "DELETE projects/{secretpath}/protected_branches/main", ``, `404 {"message":"404 Project Not Found"}`},
	{outsider, "GET projects/{secret}", ``, `404 {"message":"404 Project Not Found"}`},
	{outsider, "GET projects/{secretpath}/protected_branches/main", ``, `404 {"message":"404 Project Not Found"}`},
	{outsider, "PUT projects/{secret}", `{"name":"x"}`, `404 {"message":"404 Project Not Found"}`},
	{outsider, "GET groups/{hidden}/members", ``, `404 {"message":"404 Group Not Found"}`},
	{outsider, "POST projects", `{"name":"x","namespace_id":{hidden}}`, `404 {"message":"404 Group Not Found"}`},
	{outsider, "PUT projects/{project}", `{"name":"x"}`, `403 {"message":"403 Forbidden"}`},
	{maintainer, "PUT projects/{project}", `{"visibility":"internal"}`, `403 {"message":"403 Forbidden"}`},
	{outsider, "POST projects", `{"name":"x","namespace_id":{group}}`, `403 {"message":"403 Forbidden"}`},
	{guest, "GET projects/{secret}/protected_branches", ``, `403 {"message":"403 Forbidden"}`},
	{developer, "POST projects/{secret}/protected_branches", `{"name":"x"}`, `403 {"message":"403 Forbidden"}`},
	{developer, "PATCH projects/{project}/protected_branches/{rule}", `{}`, `403 {"message":"403 Forbidden"}`},
	{developer, "DELETE projects/{project}/protected_branches/{rule}", ``, `403 {"message":"403 Forbidden"}`},
	{developer, "GET projects/{project}/deploy_keys", ``, `403 {"message":"403 Forbidden"}`},
	{nobody, "GET projects/{project}/triggers", ``, `401 {"message":"401 Unauthorized"}`},
	{nobody, "POST projects/{secret}/triggers", `{"description":"x"}`, `401 {"message":"401 Unauthorized"}`},
	{nobody, "PUT projects/{project}/triggers/{trigger}", `{}`, `401 {"message":"401 Unauthorized"}`},
	{nobody, "DELETE projects/{project}/triggers/{trigger}", ``, `401 {"message":"401 Unauthorized"}`},
	{outsider, "GET projects/{project}/triggers", ``, `403 {"message":"403 Forbidden"}`},
	{outsider, "GET projects/{secret}/triggers", ``, `404 {"message":"404 Project Not Found"}`},
	{developer, "GET projects/{project}/triggers", ``, `403 {"message":"403 Forbidden"}`},
	{developer, "GET projects/{project}/triggers/{trigger}", ``, `403 {"message":"403 Forbidden"}`},
	{developer, "POST projects/{project}/triggers", `{"description":"x"}`, `403 {"message":"403 Forbidden"}`},
	{developer, "DELETE projects/{project}/triggers/{trigger}", ``, `403 {"message":"403 Forbidden"}`},
	{maintainer, "PUT projects/{project}/triggers/{trigger}", `{"description":"x"}`, `403 {"message":"403 Forbidden"}`},
	{root, "PUT projects/{project}/triggers/{trigger}", `{}`, `403 {"message":"403 Forbidden"}`},
	{nobody, "GET projects/{secret}/badges", ``, `404 {"message":"404 Project Not Found"}`},
	{nobody, "GET projects/{secretpath}/badges/1", ``, `404 {"message":"404 Project Not Found"}`},
	{nobody, "GET projects/{project}/badges/render?link_url=https://a&image_url=https://b", ``, `401 {"message":"401 Unauthorized"}`},
	{nobody, "POST projects/{secret}/badges", `{}`, `401 {"message":"401 Unauthorized"}`},
	{nobody, "PUT projects/{project}/badges/{badge}", `{}`, `401 {"message":"401 Unauthorized"}`},
	{nobody, "DELETE projects/{project}/badges/{badge}", ``, `401 {"message":"401 Unauthorized"}`},
	{outsider, "GET projects/{secret}/badges", ``, `404 {"message":"404 Project Not Found"}`},
	{outsider, "GET projects/{project}/badges/render?link_url=https://a&image_url=https://b", ``, `403 {"message":"403 Forbidden"}`},
	{outsider, "POST projects/{project}/badges", `{}`, `403 {"message":"403 Forbidden"}`},
	{developer, "GET projects/{project}/badges/render?link_url=https://a&image_url=https://b", ``, `403 {"message":"403 Forbidden"}`},
	{developer, "POST projects/{project}/badges", `{"link_url":"https://a","image_url":"https://a"}`, `403 {"message":"403 Forbidden"}`},
	{developer, "PUT projects/{project}/badges/{badge}", `{}`, `403 {"message":"403 Forbidden"}`},
	{developer, "DELETE projects/{project}/badges/{badge}", ``, `403 {"message":"403 Forbidden"}`},
	{nobody, "GET projects/{project}/job_token_scope", ``, `401 {"message":"401 Unauthorized"}`},
	{nobody, "PATCH projects/{project}/job_token_scope", `{"enabled":true}`, `401 {"message":"401 Unauthorized"}`},
	{nobody, "GET projects/{secret}/job_token_scope/allowlist", ``, `401 {"message":"401 Unauthorized"}`},
	{nobody, "POST projects/{project}/job_token_scope/allowlist", `{}`, `401 {"message":"401 Unauthorized"}`},
	{nobody, "DELETE projects/{project}/job_token_scope/allowlist/1", ``, `401 {"message":"401 Unauthorized"}`},
	{outsider, "GET projects/{secret}/job_token_scope", ``, `404 {"message":"404 Project Not Found"}`},
	{outsider, "GET projects/{project}/job_token_scope", ``, `403 {"message":"403 Forbidden"}`},
	{developer, "GET projects/{project}/job_token_scope", ``, `403 {"message":"403 Forbidden"}`},
	{developer, "PATCH projects/{project}/job_token_scope", `{"enabled":true}`, `403 {"message":"403 Forbidden"}`},
	{developer, "GET projects/{project}/job_token_scope/allowlist", ``, `403 {"message":"403 Forbidden"}`},
	{developer, "POST projects/{project}/job_token_scope/allowlist", `{"target_project_id":{secret}}`, `403 {"message":"403 Forbidden"}`},
	{developer, "DELETE projects/{project}/job_token_scope/allowlist/{secret}", ``, `403 {"message":"403 Forbidden"}`},
	{outsider, "GET projects/{secret}/remote_mirrors", ``, `404 {"message":"404 Project Not Found"}`},
	{outsider, "GET projects/{project}/remote_mirrors", ``, `401 {"message":"401 Unauthorized"}`},
	{developer, "GET projects/{project}/remote_mirrors", ``, `401 {"message":"401 Unauthorized"}`},
	{developer, "GET projects/{project}/remote_mirrors/{mirror}", ``, `401 {"message":"401 Unauthorized"}`},
	{developer, "POST projects/{project}/remote_mirrors", `{"url":"https://example.com/x"}`, `401 {"message":"401 Unauthorized"}`},
	{developer, "PUT projects/{project}/remote_mirrors/{mirror}", `{"enabled":true}`, `401 {"message":"401 Unauthorized"}`},
	{developer, "DELETE projects/{project}/remote_mirrors/{mirror}", ``, `401 {"message":"401 Unauthorized"}`},
	{developer, "POST projects/{project}/remote_mirrors/{mirror}/sync", ``, `401 {"message":"401 Unauthorized"}`},
	{nobody, "GET projects/{project}/labels", ``, `401 {"message":"401 Unauthorized"}`},
	{nobody, "POST projects/{project}/labels/{label}/subscribe", ``, `401 {"message":"401 Unauthorized"}`},
	{outsider, "GET projects/{secret}/labels", ``, `404 {"message":"404 Project Not Found"}`},
	{outsider, "POST projects/{secretpath}/labels", `{"name":"x","color":"red"}`, `404 {"message":"404 Project Not Found"}`},
	{outsider, "POST projects/{project}/labels", `{"name":"x","color":"red"}`, `403 {"message":"403 Forbidden"}`},
	{guest, "PUT projects/{secret}/labels/x", `{"color":"red"}`, `403 {"message":"403 Forbidden"}`},
	{guest, "DELETE projects/{project}/labels/{label}", ``, `403 {"message":"403 Forbidden"}`},
	{guest, "PUT projects/{project}/labels/{label}/promote", ``, `403 {"message":"403 Forbidden"}`},
	{maintainer, "DELETE projects/{project}", ``, `403 {"message":"403 Forbidden"}`},
	{maintainer, "POST projects/{project}/archive", ``, `403 {"message":"403 Forbidden"}`},
	{maintainer, "PUT groups/{group}", `{"name":"x"}`, `403 {"message":"403 Forbidden"}`},
	{maintainer, "POST groups/{group}/members", `{"user_id":{outsider},"access_level":10}`, `403 {"message":"403 Forbidden"}`},
	{maintainer, "POST projects/{project}/members", `{"user_id":{outsider},"access_level":50}`, `403 {"message":"403 Forbidden"}`},
	{owner, "GET deploy_keys", ``, `403 {"message":"403 Forbidden"}`},
	{owner, "POST users", `{"email":"x@example.com","name":"x","username":"xx"}`, `403 {"message":"403 Forbidden"}`},
	{owner, "POST users/{owner}/block", ``, `403 {"message":"403 Forbidden"}`},
	{root, "POST users/{root}/block", ``, `403 {"message":"403 Forbidden - The API initiating user cannot be blocked by the API"}`},
}

// aboutWhat are errors about objects that do not exist, objects that already exist, and values that are not valid.
var aboutWhat = []refusal{
	{root, "GET nowhere", ``, `404 {"error":"404 Not Found"}`},
	{root, "GET projects/{project}/nowhere", ``, `404 {"error":"404 Not Found"}`},
	{root, "GET projects/999999999", ``, `404 {"message":"404 Project Not Found"}`},
	{root, "GET projects/no%2Fsuch%2Fproject", ``, `404 {"message":"404 Project Not Found"}`},
	{root, "GET groups/no-such-group", ``, `404 {"message":"404 Group Not Found"}`},
	{root, "GET namespaces/no-such-namespace", ``, `404 {"message":"404 Namespace Not Found"}`},
	{root, "GET users/999999999", ``, `404 {"message":"404 User Not Found"}`},
	{root, "PUT users/999999999", `{"name":"x"}`, `404 {"message":"404 User Not Found"}`},
	{root, "DELETE users/999999999", ``, `404 {"message":"404 User Not Found"}`},
	{root, "GET personal_access_tokens/999999999", ``, `404 {"message":"404 Not Found"}`},
	{root, "GET projects/{project}/members/{outsider}", ``, `404 {"message":"404 Not found"}`},
	{root, "GET projects/{project}/deploy_keys/999999999", ``, `404 {"message":"404 Not found"}`},
	{root, "DELETE projects/{project}/deploy_keys/999999999", ``, `404 {"message":"404 Deploy Key Not Found"}`},
	{root, "GET projects/{project}/remote_mirrors/999999999", ``, `404 {"message":"404 Not found"}`},
	{root, "PUT projects/{project}/remote_mirrors/999999999", `{"enabled":true}`, `404 {"message":"404 Not found"}`},
	{root, "DELETE projects/{project}/remote_mirrors/999999999", ``, `404 {"message":"404 Not found"}`},
	{root, "POST projects/{project}/remote_mirrors/999999999/sync", ``, `404 {"message":"404 Not found"}`},
	{root, "GET projects/{secret}/remote_mirrors/{mirror}", ``, `404 {"message":"404 Not found"}`},
	{root, "GET projects/{project}/protected_branches/nothing", ``, `404 {"message":"404 Not found"}`},
	{root, "GET projects/{project}/protected_branches/Stable", ``, `404 {"message":"404 Not found"}`},
	{root, "PATCH projects/{project}/protected_branches/nothing", `{}`, `404 {"message":"404 Not found"}`},
	{root, "DELETE projects/{project}/protected_branches/nothing", ``, `404 {"message":"404 Not found"}`},
	{root, "PATCH projects/{project}/protected_branches/{rule}", `{"allowed_to_push":[{"id":999999999,"_destroy":true}]}`, `404 {"message":"404 Not found"}`},
	{root, "GET projects/{project}/triggers/999999999", ``, `404 {"message":"404 Not found"}`},
	{root, "PUT projects/{project}/triggers/999999999", `{}`, `404 {"message":"404 Not found"}`},
	{root, "DELETE projects/{project}/triggers/999999999", ``, `404 {"message":"404 Not found"}`},
	{root, "GET projects/{secret}/triggers/{trigger}", ``, `404 {"message":"404 Not found"}`},
	{root, "GET projects/{project}/badges/999999999", ``, `404 {"message":"404 Not found"}`},
	{root, "PUT projects/{project}/badges/999999999", `{}`, `404 {"message":"404 Not found"}`},
	{root, "DELETE projects/{project}/badges/999999999", ``, `404 {"message":"404 Not found"}`},
	{root, "GET projects/{secret}/badges/{badge}", ``, `404 {"message":"404 Not found"}`},
	{maintainer, "POST projects/{project}/job_token_scope/allowlist", `{"target_project_id":999999999}`, `404 {"message":"404 target_project_id not found Not Found"}`},
	{maintainer, "DELETE projects/{project}/job_token_scope/allowlist/999999999", ``, `404 {"message":"404 Project Not Found"}`},
	{developer, "GET projects/{project}/labels/nothing", ``, `404 {"message":"404 Label Not Found"}`},
	{developer, "PUT projects/{project}/labels/999999999", `{"color":"red"}`, `404 {"message":"404 Label Not Found"}`},
	{developer, "PUT projects/{project}/labels", `{"name":"nothing","color":"red"}`, `404 {"message":"404 Label Not Found"}`},
	{developer, "DELETE projects/{project}/labels/nothing", ``, `404 {"message":"404 Label Not Found"}`},
	{developer, "DELETE projects/{project}/labels?label_id=999999999", ``, `404 {"message":"404 Label Not Found"}`},
	{developer, "PUT projects/{project}/labels/nothing/promote", ``, `404 {"message":"404 Label Not Found"}`},
	{developer, "POST projects/{project}/labels/nothing/subscribe", ``, `404 {"message":"404 Label Not Found"}`},
	{developer, "POST projects/{project}/labels/nothing/unsubscribe", ``, `404 {"message":"404 Label Not Found"}`},
	{root, "DELETE version", ``, `405 {"error":"405 Not Allowed"}`},
	{root, "PUT projects/{project}/protected_branches/{rule}", `{}`, `405 {"error":"405 Not Allowed"}`},

	{root, "POST users", `{"email":"guest@example.com","name":"x","username":"another"}`, `409 {"message":"Email has already been taken"}`},
	{root, "POST users", `{"email":"another@example.com","name":"x","username":"GUEST"}`, `409 {"message":"Username has already been taken"}`},
	{owner, "POST projects/{project}/members", `{"user_id":{member},"access_level":30}`, `409 {"message":"Member already exists"}`},
	{maintainer, "POST projects/{path}/protected_branches", `{"name":"{rule}"}`, `409 {"message":"Protected branch '{rule}' already exists"}`},

	{maintainer, "POST projects/{project}/badges", `{"link_url":"ftp://a","image_url":"https://a"}`, `400 {"message":{"link_url":["is blocked: Only allowed schemes are http, https"]}}`},
	{maintainer, "POST projects/{project}/badges", `{"link_url":"javascript:a","image_url":"data:a"}`, `400 {"message":{"image_url":["is blocked: Only allowed schemes are http, https"],"link_url":["is blocked: Only allowed schemes are http, https"]}}`},
	{maintainer, "POST projects/{project}/badges", `{"link_url":"https://a b","image_url":"https://a"}`, `400 {"message":{"link_url":["must be a valid URL"]}}`},
	{maintainer, "PUT projects/{project}/badges/{badge}", `{"image_url":"file:///a"}`, `400 {"message":{"image_url":["is blocked: Only allowed schemes are http, https"]}}`},
	{maintainer, "GET projects/{project}/badges/render?link_url=a&image_url=https://a", ``, `400 {"message":{"link_url":["is blocked: Only allowed schemes are http, https"]}}`},
	{maintainer, "POST projects/{project}/job_token_scope/allowlist", `{"target_project_id":{project}}`, `400 {"message":"400 Bad request - Target project can't be the same as the source project"}`},
	{maintainer, "POST projects/{project}/job_token_scope/allowlist", `{"target_project_id":{unseen}}`,
		`400 {"message":"400 Bad request - The target_project that you are attempting to access does not exist or you don't have permission to perform this action"}`},
	{maintainer, "POST projects/{project}/job_token_scope/allowlist", `{"target_project_id":{secret}}`, `400 {"message":"400 Bad request - Target project is already in the job token scope"}`},
	{maintainer, "DELETE projects/{project}/job_token_scope/allowlist/{project}", ``, `400 {"message":"400 Bad request - Target project is not in the job token scope"}`},
	{maintainer, "DELETE projects/{project}/job_token_scope/allowlist/{unseen}", ``, `404 {"message":"404 Project Not Found"}`},
	{developer, "POST projects/{path}/labels", `{"name":"{label}","color":"nothing"}`, `409 {"message":"Label already exists"}`},
	{developer, "POST projects/{project}/labels", `{"name":"{grouplabel}","color":"red"}`, `409 {"message":"Label already exists"}`},
	{developer, "PUT projects/{project}/labels/{label}", `{"new_name":"{grouplabel}"}`, `400 {"message":{"title":["has already been taken"]}}`},
	{developer, "POST projects/{project}/labels", `{"name":"x","color":"nothing"}`, `400 {"message":{"color":["must be a valid color code"]}}`},
	{developer, "POST projects/{project}/labels", `{"name":"x","color":"#12345"}`, `400 {"message":{"color":["must be a valid color code"]}}`},
	{developer, "POST projects/{project}/labels", `{"name":",","color":"red"}`, `400 {"message":{"title":["is invalid"]}}`},
	{developer, "PUT projects/{project}/labels/{label}", `{"priority":-1}`, `400 {"message":{"priority":["must be greater than or equal to 0"]}}`},
	{developer, "PUT projects/{project}/labels/{grouplabel}/promote", ``, `400 {"message":"Failed to promote project label to group label"}`},
	{owner, "POST groups", `{"name":"x","path":"{grouppath}"}`, `400 {"message":{"path":["has already been taken"]}}`},
	{owner, "POST projects", `{"name":"{name}","namespace_id":{group}}`, `400 {"message":{"name":["has already been taken"],"path":["has already been taken"]}}`},
	{owner, "POST groups/{group}/members", `{"user_id":{outsider},"access_level":35}`, `400 {"message":{"access_level":["is not included in the list"]}}`},
	{owner, "POST groups/{group}/members", `{"user_id":{outsider},"access_level":30,"expires_at":"2001-01-01"}`, `400 {"message":{"expires_at":["cannot be a date in the past"]}}`},
	{owner, "POST groups/{group}/members", `{"user_id":999999999,"access_level":30}`, `404 {"message":"404 User Not Found"}`},
	{maintainer, "POST projects/{project}/deploy_keys", `{"title":"x","key":"no key"}`, `400 {"message":{"deploy_key.key":["is invalid"]}}`},
	{maintainer, "POST projects/{project}/remote_mirrors", `{"url":""}`, `400 {"message":{"url":["can't be blank"]}}`},
	{maintainer, "POST projects/{project}/remote_mirrors", `{"url":"ftp://example.com/x"}`, `400 {"message":{"url":["is blocked: Only allowed schemes are http, https, ssh, git"]}}`},
	{maintainer, "POST projects/{project}/remote_mirrors", `{"url":"sftp://git@example.com/x"}`, `400 {"message":{"url":["is blocked: Only allowed schemes are http, https, ssh, git"]}}`},
	{maintainer, "POST projects/{project}/remote_mirrors", `{"url":"https://exa mple.com/x"}`, `400 {"message":{"url":["is blocked: URI is invalid"]}}`},
	{maintainer, "POST projects/{project}/remote_mirrors", `{"url":"https://ann:1/secret@example.com/x"}`, `400 {"message":{"url":["is blocked: URI is invalid"]}}`},
	{maintainer, "POST projects/{project}/remote_mirrors", `{"url":"https://-x:y@example.com/x"}`, `400 {"message":{"url":["is blocked: Username needs to start with an alphanumeric character"]}}`},
	{maintainer, "POST projects/{project}/remote_mirrors", `{"url":"http://[::1]/x"}`, `400 {"message":{"url":["is blocked: Requests to localhost are not allowed"]}}`},
	{maintainer, "POST projects/{project}/remote_mirrors", `{"url":"http://10.0.0.1/x"}`, `400 {"message":{"url":["is blocked: Requests to the local network are not allowed"]}}`},
	{maintainer, "POST projects/{project}/remote_mirrors", `{"url":"https://example.com/x","only_protected_branches":null}`, `400 {"message":{"only_protected_branches":["can't be blank"]}}`},
	{maintainer, "POST projects/{project}/remote_mirrors", `{"url":"https://example.com/x","mirror_branch_regex":"*"}`, `400 {"message":{"mirror_branch_regex":["not valid RE2 syntax: missing argument to repetition operator: *"]}}`},
	{maintainer, "PUT projects/{project}/remote_mirrors/{mirror}", `{"only_protected_branches":null}`, `400 {"message":{"only_protected_branches":["can't be blank"]}}`},
	{maintainer, "POST projects/{project}/remote_mirrors/{mirror}/sync", ``, `400 {"message":"400 Bad request - the mirror is not enabled"}`},
	{root, "POST users", `{"email":"nowhere","name":"x","username":"another"}`, `400 {"message":{"email":["is invalid"]}}`},
	{maintainer, "POST projects/{project}/protected_branches", `{"name":"x","allowed_to_push":[{"access_level":40},{"access_level":40}]}`, `422 {"message":["Push access levels access level has already been taken"]}`},
	{maintainer, "POST projects/{project}/protected_branches", `{"name":"x","allowed_to_merge":[{"user_id":{outsider}}]}`, `422 {"message":["Merge access levels user with id {outsider}: not found"]}`},
	{maintainer, "PATCH projects/{project}/protected_branches/{rule}", `{"allowed_to_unprotect":[{"group_id":{hidden}}]}`, `422 {"message":["Unprotect access levels group with id {hidden}: not found"]}`},
	{maintainer, "PATCH projects/{project}/protected_branches/{rule}", `{"allowed_to_push":[{"access_level":40}]}`, `422 {"message":["Push access levels access level has already been taken"]}`},
}

// newVictims creates the objects of the refused requests: a public team, a private team, and objects in each.
func (d *door) newVictims() *strings.Replacer {
	GinkgoHelper()
	open, secret := d.newTeam(gitlab.PublicVisibility), d.newTeam(gitlab.PrivateVisibility)
	key := d.newDeployKey(open.project.ID, "Key", false)
	rule, _, err := d.as(root).ProtectedBranches.ProtectRepositoryBranches(open.project.ID, &gitlab.ProtectRepositoryBranchesOptions{Name: gitlab.Ptr("stable")})
	Expect(err).NotTo(HaveOccurred())
	label, groupLabel := d.newLabel(open.project.ID, "bug"), d.newLabel(open.project.ID, "urgent")
	_, err = d.as(root).Labels.PromoteLabel(open.project.ID, groupLabel.ID)
	Expect(err).NotTo(HaveOccurred())
	member := d.newUser(fresh("member"))
	_, _, err = d.as(root).ProjectMembers.AddProjectMember(open.project.ID, &gitlab.AddProjectMemberOptions{
		UserID: member.ID, AccessLevel: gitlab.Ptr(gitlab.ReporterPermissions),
	})
	Expect(err).NotTo(HaveOccurred())
	d.allow(open.project.ID, secret.project.ID)
	mirror, _, err := d.as(root).ProjectMirrors.AddProjectMirror(open.project.ID, &gitlab.AddProjectMirrorOptions{URL: gitlab.Ptr("https://example.com/mirror.git")})
	Expect(err).NotTo(HaveOccurred())
	number := func(n int64) string { return fmt.Sprint(n) }
	return strings.NewReplacer(
		"{trigger}", number(d.newTrigger(owner, open.project.ID, "Nightly").ID),
		"{url}", own.url, "{project}", number(open.project.ID), "{path}", gitlab.PathEscape(open.project.PathWithNamespace), "{name}", open.project.Name,
		"{group}", number(open.group.ID), "{grouppath}", open.group.Path, "{key}", number(key.ID), "{rule}", rule.Name,
		"{badge}", number(d.newBadge(open.project.ID, "Build").ID), "{unseen}", number(d.newPersonalProject(outsider).ID),
		"{mirror}", number(mirror.ID), "{member}", number(member.ID), "{label}", label.Name, "{grouplabel}", groupLabel.Name,
		"{secret}", number(secret.project.ID), "{secretpath}", gitlab.PathEscape(secret.project.PathWithNamespace), "{hidden}", number(secret.group.ID),
		"{root}", number(root.id), "{owner}", number(owner.id), "{guest}", number(guest.id), "{outsider}", number(outsider.id),
	)
}

var _ = throughEachDoor("Errors", func(d *door) {
	for text, refusals := range map[string][]refusal{
		"about parameters": aboutParameters, "about callers": aboutCallers, "about what is asked for": aboutWhat,
	} {
		It(text+" have the status and the body that clients know", d.again(), func() {
			victims := d.newVictims()
			var wrong []string
			for _, r := range refusals {
				answer, want := answered(send(d.as(r.who), victims.Replace(r.request), victims.Replace(r.body))), victims.Replace(r.want)
				if answer != want {
					wrong = append(wrong, fmt.Sprintf("%s by %s: %s\nis answered %s\ninstead of  %s", r.request, r.who.name, r.body, answer, want))
				}
			}
			Expect(strings.Join(wrong, "\n\n")).To(BeEmpty())
		})
	}

	It("list the methods of an endpoint if the method of the request does not exist", func() {
		r := send(d.as(root), "DELETE version", "")
		Expect(answered(r)).To(Equal(`405 {"error":"405 Not Allowed"}`))
		Expect(r.Header.Get("Allow")).To(Equal("GET, HEAD"))
	})

	It("are understood by the client", func() {
		_, _, err := d.as(outsider).Users.CreateUser(&gitlab.CreateUserOptions{Email: gitlab.Ptr("a@example.com"), Name: gitlab.Ptr("A"), Username: gitlab.Ptr("aa")})
		Expect(err).To(MatchError(ContainSubstring("{message: 403 Forbidden}")))
		_, _, err = d.as(root).Users.CreateUser(&gitlab.CreateUserOptions{Email: gitlab.Ptr("a"), Name: gitlab.Ptr("A"), Username: gitlab.Ptr("aa")})
		Expect(err).To(MatchError(HaveSuffix("400 {message: {email: [is invalid]}}")))
		_, _, err = d.as(root).Users.CreateUser(&gitlab.CreateUserOptions{Name: gitlab.Ptr("A"), Username: gitlab.Ptr("aa")})
		Expect(err).To(MatchError(HaveSuffix("400 {error: email is missing}")))
	})
})

// unknown is the answer to an unknown token.
const unknown = `401 {"message":"401 Unauthorized"}`

var _ = withTokens("Tokens", func(d *door) {
	It("that are unknown are refused, even if the endpoint needs no token", func() {
		for _, path := range []string{"user", "projects", "version", "projects/1", "groups"} {
			Expect(answered(send(d.with("no-such-token"), "GET "+path, ""))).To(Equal(unknown), path)
		}
	})

	It("can be in a header or in a parameter", func() {
		for _, parameter := range []string{"private_token", "access_token"} {
			Expect(answered(d.get("user?"+parameter+"="+developer.token))).To(ContainSubstring(`"username":"developer"`), parameter)
			Expect(answered(d.get("projects?"+parameter+"=wrong"))).To(Equal(unknown), parameter)
		}
		r := d.get("projects?per_page=1&private_token=" + developer.token)
		Expect(r.Header.Get("Link")).NotTo(ContainSubstring(developer.token))
	})

	It("that have expired or were revoked are refused with that reason", func() {
		name := fresh("expired")
		token := &v1alpha1.AccessToken{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: v1alpha1.AccessTokenSpec{
				UserRef: v1alpha1.Reference{Name: "developer"}, SecretRef: &v1alpha1.SecretKeyReference{Name: name},
				Scopes: []v1alpha1.TokenScope{v1alpha1.ScopeAPI},
			},
		}
		Expect(api.Create(context.Background(), token)).To(Succeed())
		declared := d.with(valueOf(name))
		expiry := fmt.Appendf(nil, `{"spec":{"expiresAt":%q}}`, time.Now().Add(-time.Hour).UTC().Format(time.RFC3339))
		Expect(api.Patch(context.Background(), token, client.RawPatch(types.MergePatchType, expiry))).To(Succeed())
		Eventually(func() string { return answered(send(declared, "GET projects", "")) }).WithPolling(polling).Should(Equal(expired))
		made := d.newToken(developer.id, "api")
		_, err := d.as(root).PersonalAccessTokens.RevokePersonalAccessTokenByID(made.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(send(d.with(made.Token), "GET projects", ""))).To(Equal(revoked))
	})

	It("without the necessary scope are refused with the names of sufficient scopes", func() {
		insufficient := func(scopes string) string {
			return `403 {"error":"insufficient_scope","error_description":"The request requires higher privileges than provided by the access token.","scope":"` + scopes + `"}`
		}
		profile, reading, git := d.newToken(developer.id, "read_user"), d.newToken(developer.id, "read_api"), d.newToken(developer.id, "write_repository")
		for _, tt := range []struct{ token, request, want string }{
			{profile.Token, "GET user", "200"},
			{profile.Token, "GET version", "200"},
			{profile.Token, "GET projects", insufficient("api read_api")},
			{profile.Token, "GET projects/999999999", insufficient("api read_api")},
			{reading.Token, "GET projects", "200"},
			{reading.Token, "POST projects", insufficient("api")},
			{git.Token, "GET user", insufficient("api read_api read_user")},
			{git.Token, "GET personal_access_tokens/self", "200"},
		} {
			Expect(answered(send(d.with(tt.token), tt.request, ""))).To(HavePrefix(tt.want), tt.request)
		}
	})

	It("of administrators can act as another user", func() {
		for _, name := range []any{"guest", guest.id} {
			me, _, err := d.as(root).Users.CurrentUser(gitlab.WithSudo(name))
			Expect(err).NotTo(HaveOccurred())
			Expect(me.ID).To(Equal(guest.id))
		}
		Expect(answered(send(d.as(root), "GET user?sudo=guest", ""))).To(ContainSubstring(`"username":"guest"`))
		sudo := func(c *gitlab.Client, name string) string {
			return answered(send(c, "GET user", "", gitlab.WithSudo(name)))
		}
		Expect(sudo(d.as(developer), "guest")).To(Equal(`403 {"message":"403 Forbidden - Must be admin to use sudo"}`))
		Expect(sudo(d.as(root), "no-one")).To(Equal(`404 {"message":"404 User with ID or username 'no-one' Not Found"}`))
		Expect(sudo(d.with(d.newToken(root.id, "api").Token), "guest")).To(HavePrefix(`403 {"error":"insufficient_scope"`))
	})
})

var _ = Describe("Bearer tokens at Forgeplane's own address", func() {
	It("are accepted like other tokens", func() {
		bearer := func(token string) string {
			return answered(own.get("user", gitlab.WithToken(gitlab.OAuthToken, token)))
		}
		Expect(bearer(developer.token)).To(ContainSubstring(`"username":"developer"`))
		Expect(bearer("no-such-token")).To(Equal(unknown))
	})
})
