// Package neighbours creates and maintains the shadow copies that audits replay on: D0, a copy of the protected tables,
// and neighbours D1, each D0 with exactly one privacy unit removed, replaced or added.
//
// In: connection strings of the source (read only, one snapshot) and of the shadow database, the protected tables, the
// privacy unit and rules for choosing units. Out: schemas of the shadow database, recorded in a control schema there.
//
// A row of the unit's table belongs to the unit that its key names. A row of another table belongs to every unit of the
// rows that it references: by any path of foreign keys, along self references and cycles to the end (the least
// fixpoint). A row that belongs to two units is removed with either. Foreign keys of the unit's table itself are not
// paths: an employee does not belong to the manager.
//
// A set of schemas is built under other names and replaces the current one in one transaction, with a new epoch. A
// killed process leaves the old set or the new one; the next command removes the rest, which is recorded.
//
// The package owns the reading of the source, the statements that build the copies, the choice of units and the
// verification that a pair differs by one unit. It does not replay, and has no information about the use of the schemas
// in audits.
package neighbours
