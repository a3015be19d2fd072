// Package flow holds no code: its test keeps the imports of this module in the direction of the data,
// proxy -> capture -> rewrite -> replay -> analysis -> alert. A stage imports only the value types that it takes
// or gives, never the next stage; internal/audit alone sees them all.
package flow
