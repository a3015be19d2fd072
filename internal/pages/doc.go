// Package pages shows what a dpwatch does and found, as web pages on the admin port.
//
// Pages are rendered here, from what package relay knows; relay does not know this package. In: a Relay. Out: an
// http.Handler behind the checks of package web, which say who asks (web.IdentityOf). Pages load nothing from elsewhere
// and work without scripts; with scripts, they follow the status (GET /events). Nothing here decodes evidence or parses
// SQL, because this process relays the traffic.
//
// To add a page: a template NAME.html that defines "main", a method that returns its content, and a line in New and in
// navigation.
package pages
