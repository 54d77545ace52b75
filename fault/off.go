//go:build !faults

package fault

// Point does nothing, and costs nothing, in a build without the tag faults.
func Point(string) {}
