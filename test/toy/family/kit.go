// Package family stands for the package of the same name in apiserver, whose kit has no toys.
package family

import (
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/internal/activity"
	"github.com/forgeplane/forgeplane/test/toy/internal/toy"
)

// Kit is a family.Kit with toys in the activity database.
type Kit struct {
	family.Kit
	Activity Stores
}

// Stores are the stores of the activity database, and one of toys.
type Stores struct {
	activity.Stores
	Toys *toy.Store
}

// Tasks is family.Tasks.
type Tasks = family.Tasks
