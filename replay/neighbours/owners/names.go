package owners

import (
	"slices"
	"strings"
	"unicode"
)

// Words returns the words of a name in lower case: author_user_id, authorUserId and AuthorUserID have three.
func Words(name string) (words []string) {
	var word []rune
	end := func() {
		if len(word) > 0 {
			words = append(words, strings.ToLower(string(word)))
		}
		word = nil
	}
	all := []rune(name)
	for i, c := range all {
		switch {
		case !unicode.IsLetter(c) && !unicode.IsDigit(c):
			end()
			continue
		case unicode.IsUpper(c) && i > 0 && (unicode.IsLower(all[i-1]) || i+1 < len(all) && unicode.IsUpper(all[i-1]) && unicode.IsLower(all[i+1])):
			end()
		}
		word = append(word, c)
	}
	end()
	return words
}

// Singular returns a word without the ending of its plural: users, companies, boxes, people.
func Singular(word string) string {
	switch {
	case word == "people":
		return "person"
	case strings.HasSuffix(word, "ies"):
		return strings.TrimSuffix(word, "ies") + "y"
	case strings.HasSuffix(word, "sses") || strings.HasSuffix(word, "xes"):
		return strings.TrimSuffix(word, "es")
	case strings.HasSuffix(word, "ss") || strings.HasSuffix(word, "us"):
		return word
	}
	return strings.TrimSuffix(word, "s")
}

// set returns the words of a text.
func set(text string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(text) {
		out[w] = true
	}
	return out
}

var (
	// keys are words by which a column that names something ends.
	keys = set("id ids uuid guid uid fk key pk ref oid")
	// persons are words for any person, also as the name of a table.
	persons = set(`user person member account customer client patient employee student subscriber participant respondent citizen individual subject voter player driver
		passenger guest identity contact profile staff admin people uid who`)
	// roles are words for a person to whom a row may belong.
	roles = set(`owner author sender recipient receiver assignee reporter requester requestor buyer seller purchaser payer payee beneficiary follower followee friend invitee
		actor holder donor host rider borrower lender tenant applicant candidate attendee caller callee speaker winner voter rater writer poster commenter originator debtor creditor
		physician doctor nurse teacher agent initiator watcher from to by`)
	// marks are words before a person's key that is a bound or a position, of a job that reads all of them.
	marks = set("max min next prev previous first last")
	// owning are participles before "by" of what makes a row that of the person.
	owning = set(`owned written authored posted sent submitted placed ordered booked bought purchased paid requested reserved rented borrowed used held claimed donated given rated
		liked followed viewed watched played answered asked voted commented said`)
	// acts are participles and nouns of what is done with a row by a person to whom it does not belong because of that.
	acts = set(`locked unlocked resolved updated modified created approved reviewed deleted uploaded archived closed edited changed verified published unpublished confirmed rejected
		cancelled canceled granted revoked invited added removed moderated checked processed handled validated completed merged imported exported generated enabled disabled banned
		blocked pinned flagged hidden restored inserted entered recorded registered maintained managed authorized authorised accepted declined triggered executed scheduled issued
		creator updater modifier editor approver reviewer uploader locker resolver deleter moderator publisher verifier validator inviter assigner assignor operator handler
		registrar maintainer manager supervisor performer whodunnit creation modification deletion approval`)
	// verbs begin the name of a column of an act if a word for a user follows.
	verbs = set("create write update modify delete edit")
	// filler are words that say nothing about whose row it is.
	filler = set("id ids uuid guid uid fk key pk ref oid last first current original user users person account staff admin member employee auth app the is")
	// addresses are words of columns by which a person can be identified besides the key.
	addresses = set("email mail login username phone mobile msisdn telephone tel ssn")
)

// Act reports whether a column that refers to a person is, by its name, one of an act: locked_by, updated_by_user_id,
// creator_id, user_created. It names who did something with the row, which does not belong to them for that reason.
//
// The name of the table that it refers to is none of an act: an editor_id that refers to editors.
func Act(column, table string) bool {
	words := Words(column)
	if one, of := thing(column), Words(table); len(one) == 1 && len(of) > 0 && Singular(one[0]) == Singular(of[len(of)-1]) {
		return false
	}
	for i, w := range words {
		if w == "by" && i > 0 && !owning[words[i-1]] {
			return true
		}
	}
	if slices.Contains(words, "by") {
		return false
	}
	act := len(words) > 1 && verbs[words[0]] && (words[1] == "uid" || words[1] == "user") // create_uid
	if act {
		return true
	}
	for _, w := range words {
		act = act || acts[w]
		if !acts[w] && !filler[w] {
			return false
		}
	}
	return act
}

// Fit is how well the name of a column fits a person's table.
type Fit int

// The fits, the best last.
const (
	Unfit  Fit = iota
	Person     // a word for a person, a role, or an act: owner, locked_by, member_id
	Named      // the name of the table, perhaps with words before it: user_id, author_user_id, auth_user, userid
)

// FitOf returns how well a column fits a table whose rows are persons. key is the name of its key.
func FitOf(column, table, key string) Fit {
	words, of := thing(column), Words(table)
	if len(words) == 0 || len(of) == 0 {
		return Unfit
	}
	last, name := Singular(words[len(words)-1]), Singular(of[len(of)-1])
	whole := strings.Join(words, "")
	switch {
	case last == name, whole == name+"id", whole == name+"uid", column == key && len(Words(key)) > 1:
		return Named
	case Act(column, table), persons[last], roles[last]:
		return Person
	}
	return Unfit
}

// PersonTable reports whether the name of a table is one for persons: customers, auth_user, staff_profile.
func PersonTable(name string) bool {
	words := Words(name)
	return len(words) > 0 && persons[Singular(words[len(words)-1])]
}

// NamesTable reports whether a text is a name of a table or of the class of its rows, as generic references have it:
// User, auth.user, App\Models\User, users.
func NamesTable(text, table string) bool {
	segment := text[strings.LastIndexAny(text, `\.:/`)+1:]
	said, of := Words(segment), Words(table)
	if len(said) == 0 || len(of) == 0 {
		return false
	}
	said[len(said)-1], of[len(of)-1] = Singular(said[len(said)-1]), Singular(of[len(of)-1])
	a, b := strings.Join(said, ""), strings.Join(of, "")
	return a == b || a == of[len(of)-1] // with and without the table's prefix
}

// address reports whether a column's name is one for an e-mail address, a login or a phone number.
func address(column string) bool {
	words := Words(column)
	for i, w := range words {
		if addresses[w] || w == "name" && i > 0 && words[i-1] == "user" {
			return !slices.Contains(words, "at") && !slices.Contains(words, "template")
		}
	}
	return false
}
