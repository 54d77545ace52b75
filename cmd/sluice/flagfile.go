package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// valueOrFile returns the value of a secret flag, or what the file of its --…-file twin holds, without the white space
// around it; "" when neither was given. A file keeps a secret out of the process list and of the environment. It fails
// when both were given, and for a file that cannot be read or is empty.
func valueOrFile(flag, value, file string) (string, error) {
	if file == "" {
		return value, nil
	}
	if value != "" {
		variable := "SLUICE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
		return "", usagef("--%s and --%s-file are both given (perhaps by %s, %s_FILE or the file of --config): keep one", flag, flag, variable, variable)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("--%s-file: %s cannot be read (%w)", flag, file, underlying(err))
	}
	text := strings.TrimSpace(string(data))
	if text == "" {
		return "", fmt.Errorf("--%s-file: %s is empty", flag, file)
	}
	return text, nil
}

// underlying is what went wrong with a file, without the call of Go that it went wrong in.
func underlying(err error) error {
	var file *fs.PathError
	if errors.As(err, &file) {
		return file.Err
	}
	return err
}
