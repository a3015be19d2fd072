// Package flow holds no code: its tests keep the imports of this module within layers. Data flows
// proxy -> capture -> rewrite -> replay -> analysis -> alert. A stage imports only the value types that it takes or
// gives, never another stage; internal/audit alone sees them all. The relay process never reaches the SQL parser, which
// is a C library.
package flow
