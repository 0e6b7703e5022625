package main

import (
	"errors"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/forgeplane/forgeplane/internal/quota"
)

func bindQuotas(f *pflag.FlagSet, l *quota.Limits) {
	f.IntVar(&l.Projects, "quota-projects", l.Projects, "number of projects that a user can create over REST in --home-namespace; 0 for any number. spec.projectsLimit of a User overrides it")
	f.IntVar(&l.Groups, "quota-groups", l.Groups, "number of groups that a user can create over REST in --home-namespace; 0 for any number")
	f.IntVar(&l.Tokens, "quota-tokens", l.Tokens, "number of personal access tokens of a user that are neither revoked nor expired; 0 for any number")
	f.IntVar(&l.Settings, "quota-settings", l.Settings, "number of labels that a project or group can have for REST to create another one, and the same for badges, members and so on; 0 for any number")
}

func validateQuotas(l quota.Limits) error {
	if min(l.Projects, l.Groups, l.Tokens, l.Settings) < 0 {
		return errors.New("--quota-projects, --quota-groups, --quota-tokens and --quota-settings must be 0 or more")
	}
	return nil
}

// retention are the flags that limit the repositories of deleted projects. 0 means no limit.
type retention struct {
	repositories int
	size         resource.QuantityValue
}

func defaultRetention() retention {
	d := quota.DefaultRetention()
	return retention{repositories: d.Repositories, size: bytesValue(d.Bytes)}
}

func (r *retention) bind(f *pflag.FlagSet) {
	f.IntVar(&r.repositories, "quota-retained", r.repositories, "number of repositories that the deleted projects of a namespace can leave before further deletions wait; 0 for any number")
	f.Var(&r.size, "quota-retained-size", "size on disk of the repositories that the deleted projects of a namespace can leave, as in 100Gi; 0 for any size")
}

func (r *retention) validate() error {
	if r.repositories < 0 || r.size.Sign() < 0 {
		return errors.New("--quota-retained and --quota-retained-size must be 0 or more")
	}
	return nil
}

func (r *retention) quota() quota.Retention {
	return quota.Retention{Repositories: r.repositories, Bytes: r.size.Value()}
}
