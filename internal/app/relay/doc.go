// Package relay runs the process that relays the traffic: the proxy, the supervisor of each auditor process, the admin
// API, and what pages ask for.
package relay
