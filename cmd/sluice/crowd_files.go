//go:build unix

package main

import (
	"fmt"
	"syscall"
)

// allowFiles raises the limit of open files of this process as far as it may, and says so when need is above it.
func allowFiles(need uint64) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("ask how many files this process may open: %w", err)
	}
	if uint64(limit.Cur) < need && limit.Cur < limit.Max {
		limit.Cur = limit.Max
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			return fmt.Errorf("raise the limit of open files: %w", err)
		}
	}
	if uint64(limit.Cur) < need {
		return fmt.Errorf("this crowd needs %d open files and the process may have %d: raise the limit (ulimit -n %d), or send several smaller crowds, each with its own --prefix",
			need, limit.Cur, need)
	}
	return nil
}

// filesAllowed is how many files this process may open.
func filesAllowed() (uint64, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("ask how many files this process may open: %w", err)
	}
	return uint64(limit.Cur), nil
}
