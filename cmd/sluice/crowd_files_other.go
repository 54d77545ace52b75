//go:build !unix

package main

// allowFiles has nothing to do where sockets are not counted as open files.
func allowFiles(uint64) error { return nil }
