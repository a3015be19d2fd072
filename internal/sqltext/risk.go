package sqltext

import "strings"

// Risk is what statements that were not read may have done to their session.
type Risk uint8

// The risks.
const (
	RiskSettings Risk = 1 << iota // settings have changed
	RiskTemps                     // temporary relations were created
	RiskNames                     // prepared statements or cursors were removed
	RiskRenames                   // temporary relations that exist were renamed, or views of them created
	RiskCode                      // functions were created, which later statements may call
)

// Unread is the risk of the words in a text that could not be read, AllRisks that of a statement of which not even the
// command tag is known.
const (
	Unread   = RiskSettings | RiskTemps
	AllRisks = Unread | RiskNames | RiskRenames
)

// MentionLen is the length of the longest word that Mentions looks for.
const MentionLen = len("pg_settings")

// Mentions returns the risks of the words in a text that is not read further, possibly a piece of a statement. Together
// with TagRisk it covers a whole statement.
func Mentions(text string) Risk {
	var r Risk
	if containsAround(text, "set", "_config") || containsAround(text, "pg", "_settings") || strings.Contains(text, `U&"`) || strings.Contains(text, `u&"`) {
		r = RiskSettings
	}
	if strings.ContainsAny(text, "$'") && containsAround(text, "", "commit") { // a DO block can commit and then fail, without a tag
		r = RiskSettings
	}
	if mentionsTemp(text) {
		r |= RiskTemps
	}
	return r
}

// TagRisk returns the risks of a completed statement with this command tag, as far as the tag shows them. Mentions
// covers the others.
func TagRisk(tag string) Risk {
	verb, rest, _ := strings.Cut(tag, " ")
	switch verb {
	case "SET", "RESET", "SAVEPOINT", "RELEASE":
		return RiskSettings
	case "DO", "CALL":
		return RiskSettings | RiskNames
	case "DISCARD", "":
		return AllRisks
	case "DEALLOCATE", "DECLARE", "CLOSE":
		return RiskNames
	case "ALTER":
		return RiskRenames
	case "CREATE":
		switch rest {
		case "VIEW":
			return RiskRenames
		case "FUNCTION", "PROCEDURE":
			return RiskCode
		}
	case "PREPARE":
		if rest != "" { // PREPARE TRANSACTION
			return RiskSettings
		}
	}
	return 0
}
