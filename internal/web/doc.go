// Package web serves the admin port: it authorizes requests and bounds what they cost.
//
// It owns the protection of the listeners (Host, bearer tokens, TLS, time and size limits); the served content comes
// from the caller's handler. In: Options. Out: a Server for the listeners of one section of the configuration.
//
// A request is served if it passes these checks, in this order:
//
//  1. /livez and /readyz are open.
//  2. Host is localhost, an IP address that Options.Exposed allows, or one of Hosts: a page that rebinds its own name to this
//     address (DNS rebinding) is refused. A Unix socket accepts any Host.
//  3. A browser's request that changes something has the same origin.
//  4. With MetricsOnly, it asks for /metrics.
//  5. Its sender is known: by a token (Authorization, or the cookie of a browser that has logged in with one), by the header of a
//     trusted proxy, or because the listener needs neither. A browser that asks for a page is sent to /login.
//  6. It changes nothing, or its sender is an operator. Without token and proxy that is only who came through a Unix socket, which
//     only the user of this process can open.
//
// POST /login and /logout are answered here; GET /login and /static/ are open.
package web
