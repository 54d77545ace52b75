package main

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// account is who the services run as. PostgreSQL and MariaDB refuse to run as root, so root gives them to nobody, the
// account that every system has and that owns nothing; an ordinary user runs them as itself.
type account struct {
	uid, gid int
	other    bool // not the user this process runs as
}

func serviceAccount() (account, error) {
	if os.Getuid() != 0 {
		return account{uid: os.Getuid(), gid: os.Getgid()}, nil
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		return account{}, fmt.Errorf("looking for an account to run services as: %w", err)
	}
	uid, uidErr := strconv.Atoi(nobody.Uid)
	gid, gidErr := strconv.Atoi(nobody.Gid)
	if uidErr != nil || gidErr != nil {
		return account{}, fmt.Errorf("looking for an account to run services as: nobody is %s:%s", nobody.Uid, nobody.Gid)
	}
	return account{uid: uid, gid: gid, other: true}, nil
}

// own gives a file or folder to the account.
func (a account) own(path string) error {
	if !a.other {
		return nil
	}
	return os.Chown(path, a.uid, a.gid)
}

// attributes makes a process run as the account.
func (a account) attributes() *syscall.SysProcAttr {
	if !a.other {
		return &syscall.SysProcAttr{}
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}}
}
