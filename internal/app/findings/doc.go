// Package findings explains an audit in five answers, and reproduces it with fresh trials.
package findings
