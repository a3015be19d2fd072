// Package engine identifies the versions of a DP engine.
//
// In: a database whose functions are the engine, or an engine's own answer to a query. Out: a Snapshot, from which
// Epoch computes the engine epoch of a query: a hash of everything outside the data that its answers depend on, as far
// as catalogs show it. These are the definitions of the functions that the query calls, of the functions that they call
// in turn, the versions of extensions and of the server, and the settings of the database and the role.
//
// Names are resolved like calls are, but without the types of arguments: every overload of a name that is visible under
// the search path counts. So an epoch may change although the query's answers do not, which costs a repeated audit; the
// opposite is possible only where no catalog shows it: the file of a C library of the same version, the definition of
// an operator that is used in the body of a function, or a statement that a body builds at run time from parts of
// names.
package engine
