// Package desk owns the state of all audits and decides what happens to them.
//
// It is pure: it does no input and output, takes no lock and reads no clock. What a decision makes others do is
// returned as effects, in the order in which they must happen. Each use of a Desk begins with At, has any number of
// events, which are the methods of its fields, and ends with Drain. Each field has one task, and the state of it.
//
// An audit that has a turn belongs to whoever runs the turn until it ends: it is not evicted, and its evidence is in
// the turn. So the key of the audit names the turn, too.
package desk
