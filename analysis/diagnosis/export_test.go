package diagnosis

// Names are the names of all causes.
var Names = names
