// Package showcase holds the demo's data, databases and queries, with the planted verdicts.
//
// It owns the generator of the showcase data (users and transactions, and the same without one user), loads it into
// schemas, sets up the two databases of the demo with their roles, and defines the queries that a client sends. It does
// not own the functions that the queries call (package zoo), the server (package pgtemp), the copies in the shadow
// database (package neighbours) or verdicts.
//
// The data is the published showcase: 100 users with incomes from normal(40000, 10000), 10,000 transactions with
// amounts from uniform(5, 500) over 200 stores, one user with exactly 500 of them over all stores, preferring the
// higher ids, the rest spread evenly over the others. In addition, that user has the highest income and is the only one
// in the income class "top", so that one group exists because of one person.
package showcase
