package git

// HalfOf is HalfMemory for another machine.
var HalfOf = halfOf

// ReadLayout reads the layout of a repository that git has created.
func ReadLayout(dir string) error {
	_, err := readLayout(dir)
	return err
}
