package activity

import "context"

// Look has a sweeper look once.
func (s *Sweeper) Look(ctx context.Context) error { return s.look(ctx) }
