// Package neighbours makes and keeps the shadow copies that audits replay on: D0, a copy of the protected tables, and
// neighbours D1, each D0 with exactly one privacy unit removed, replaced or added.
//
// In: connection strings of the source (read only, one snapshot) and of the shadow database, the protected tables, the
// privacy unit and rules for choosing units. Out: schemas of the shadow database, recorded in a control schema there.
//
// A row of the unit's table belongs to the unit that its key names. A row of another table belongs to every unit that
// a row it references belongs to: by any path of foreign keys, along self references and cycles to the end (the least
// fixpoint). A row that belongs to two units goes with either. Foreign keys of the unit's table itself are no paths:
// who has a manager does not belong to the manager.
//
// A set of schemas is built under other names and takes its place in one transaction, with a new epoch: a process that
// is killed leaves the old set or the new one, and what else it left is recorded and removed by the next command.
//
// It owns the reading of the source, the statements that build the copies, the choice of units and the proof that a
// pair differs by one unit. It does not replay, and it does not know how an audit uses the schemas.
package neighbours
