package ledger

// addDestinations is read.AddDestinations as SQL, where a query is stored again.
const addDestinations = `destinations = ARRAY(SELECT d FROM unnest(
	(queries.destinations || ARRAY(SELECT d FROM unnest(excluded.destinations) d WHERE d <> ALL (queries.destinations)))[1:8]) d ORDER BY d COLLATE "C")`
