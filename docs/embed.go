// Package docs holds the documents that programs read: what the server says, as OpenAPI and as AsyncAPI.
package docs

import "embed"

// Specifications are openapi.yaml and asyncapi.yaml.
//
//go:embed openapi.yaml asyncapi.yaml
var Specifications embed.FS
