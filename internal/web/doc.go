// Package web serves the admin port: it authorizes requests and bounds what they cost.
//
// It owns the protection of the listeners (Host, bearer tokens, TLS, time and size limits); the served content comes from
// the caller's handler. In: Options. Out: a Server for the listeners of one section of the configuration.
//
// A request is served if it passes these checks, in this order:
//
//  1. /livez and /readyz are open.
//  2. Host is localhost, an IP address that Options.Exposed allows, or one of Hosts: a page that rebinds its own name to this
//     address (DNS rebinding) is refused. A Unix socket accepts any Host.
//  3. A browser's request that changes something has the same origin.
//  4. With MetricsOnly, it asks for /metrics.
//  5. With a token file, it has one of the tokens, unless OpenMetrics is set and it asks for /metrics.
//  6. Without a token file, it changes nothing, or came through a Unix socket, which only the user of this process can open.
package web
