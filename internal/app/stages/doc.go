// Package stages translates the configuration into the options of the stages that parse SQL or replay: rewrite, replay,
// neighbours, and the readers of catalogs. The relay process must not import it; package setup has what it needs.
package stages
