// Package check holds the tests of the files under deploy that other programs read, against the definitions of those
// programs themselves.
package check
