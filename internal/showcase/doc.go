// Package showcase is the demo's world: the data, the databases, and the queries with the verdicts that are planted.
//
// It owns the generator of the method's showcase data (users and transactions, and the same without one user), loading
// it into schemas, the two databases of the demo with their roles, and the mix of queries that a client sends. It does
// not own the functions that the queries call (package zoo), the server (package pgtemp) or any verdict.
//
// The data is the published showcase: 100 users with incomes from normal(40000, 10000), 10,000 transactions with amounts
// from uniform(5, 500) over 200 stores, one user with exactly 500 of them over all stores, preferring the higher ids, the
// rest spread evenly over the others. Added to it: that user has the highest income and is alone in the income class
// "top", so that there is one group which exists because of one person.
package showcase
