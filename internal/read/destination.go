package read

import (
	"slices"
	"strings"
)

// ToClient is the destination of answers that the client received.
const ToClient = "to the client"

// MostDestinations is how many destinations of one query are kept, the first ones.
const MostDestinations = 8

// AddDestinations returns the destinations with further ones, sorted.
func AddDestinations(all, more []string) []string {
	for _, d := range more {
		if len(all) < MostDestinations && !slices.Contains(all, d) {
			all = append(slices.Clone(all), d)
			slices.Sort(all)
		}
	}
	return all
}

// DestinationsText returns where answers went as text; "" if only the client received them.
func DestinationsText(all []string) string {
	if len(all) == 1 && all[0] == ToClient {
		return ""
	}
	return strings.Join(all, "; ")
}
