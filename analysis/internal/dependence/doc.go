// Package dependence tests whether trials depend on each other ([Independence]), and whether they have shown that they
// do not ([Mixing]).
package dependence
