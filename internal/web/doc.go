// Package web serves the admin port: it decides who may ask for what, and bounds what a request may cost.
//
// It owns the listeners' protection (Host, bearer tokens, TLS, time and size limits) and nothing of what is served: the
// handler comes from the caller. In: Options. Out: a Server for the listeners of one section of the configuration.
//
// A request is served if it passes these checks, in this order:
//
//  1. /livez and /readyz are open.
//  2. Host is the listener's address or one of Hosts: a page that rebinds its own name to this address (DNS rebinding) is refused.
//  3. A browser's request that changes something comes from the same origin.
//  4. With MetricsOnly, it asks for /metrics.
//  5. With a token file, it carries one of the tokens, unless OpenMetrics is set and it asks for /metrics.
//  6. Without a token file, it changes nothing, or came through a Unix socket, which only the user of this process can open.
package web
