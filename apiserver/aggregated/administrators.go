package aggregated

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// answersLast is for how long it is believed what RBAC said.
const answersLast = 10 * time.Second

// Administrators knows which Kubernetes identities administer the instance: those whom RBAC allows the verb administer on
// instances.forgeplane.dev, in the whole cluster. A cluster administrator is allowed everything, and so one of them.
type Administrators struct{ authorizer authorizer.Authorizer }

// NewAdministrators returns one that asks the cluster, by a SubjectAccessReview, and remembers the answers for 10 seconds.
func NewAdministrators(config *rest.Config) (*Administrators, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	a, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: client.AuthorizationV1(), AllowCacheTTL: answersLast, DenyCacheTTL: answersLast,
		WebhookRetryBackoff: options.DefaultAuthWebhookRetryBackoff(),
	}.New()
	if err != nil {
		return nil, fmt.Errorf("setting up the question for administrators: %w", err)
	}
	return &Administrators{authorizer: a}, nil
}

// Include reports whether the request that ctx belongs to comes from an administrator. Where the cluster cannot be asked it is an error,
// and no caller is an administrator.
func (a *Administrators) Include(ctx context.Context) (bool, error) {
	u, ok := request.UserFrom(ctx)
	if !ok {
		return false, nil
	}
	decision, _, err := a.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: u, Verb: "administer", APIGroup: "forgeplane.dev", APIVersion: "*", Resource: "instances", ResourceRequest: true,
	})
	if err != nil {
		return false, fmt.Errorf("asking whether %s is an administrator: %w", u.GetName(), err)
	}
	return decision == authorizer.DecisionAllow, nil
}
