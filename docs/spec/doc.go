// Package spec holds what a server really says against docs/openapi.yaml and docs/asyncapi.yaml. Only tests use it.
//
// Both documents let a client meet fields that it does not know. Here they do not: a field that the server sends and the
// documents do not name is an error, so that neither can be forgotten.
package spec
