package draft

import (
	"slices"
	"strings"
	"unicode"

	"github.com/dpwatch/dpwatch/replay/neighbours/owners"
)

// plainLetters replaces the accented letters of western European languages.
var plainLetters = strings.NewReplacer("ä", "ae", "ö", "oe", "ü", "ue", "ß", "ss", "á", "a", "à", "a", "â", "a", "ã", "a", "å", "a", "ç", "c",
	"é", "e", "è", "e", "ê", "e", "ë", "e", "í", "i", "î", "i", "ñ", "n", "ó", "o", "ô", "o", "õ", "o", "ø", "o", "ú", "u", "ù", "u", "û", "u")

// wordsOf returns the words of a name in lower case, in the singular and without accents and digits: user and account
// of UserAccounts, user_accounts and USER_ACCOUNT2.
func wordsOf(name string) (words []string) {
	for _, w := range owners.Words(plainLetters.Replace(name)) {
		if w = strings.TrimFunc(w, unicode.IsDigit); w != "" {
			words = append(words, owners.Singular(w))
		}
	}
	return words
}

// role is the relation of the persons of a table to those who operate the database.
type role int

// The roles, in the order in which one is preferred to another: orders, visits and treatments are those of subjects.
const (
	thing   role = iota
	staff        // works with the data of others
	person       // may be anybody
	subject      // the data are about them
)

// vocabulary is the role of each word for persons.
var vocabulary = inverse(map[role]string{
	subject: `customer patient member subscriber client constituent supporter enrollee registrant traveler traveller renter lessee offender defendant claimant
		pensioner student pupil citizen voter respondent participant passenger donor shopper buyer patron cardholder policyholder accountholder insured
		insuree beneficiary borrower debtor taxpayer resident inmate learner applicant candidate guest attendee visitor consumer contact lead holder rider cust
		mitglied mitglieder membre miembro socio kunde kunden patienten teilnehmer versicherter versicherte schueler cliente paciente paziente pacjent klant eleve etudiant abonne alumno estudiante studente asiakas potilas`,
	person: `user usr person individual human household profile account identity login owner player subject party partner principal parent guardian pers
		benutzer nutzer anwender personen konto personne utilisateur compte usuario persona cuenta utente gebruiker persoon bruker anvandare
		uzytkownik osoba pessoa klient`,
	staff: `employee staff worker doctor physician nurse teacher instructor admin administrator agent operator clerk editor author moderator driver clinician practitioner provider
		caregiver seller salesperson salesman manager emp mitarbeiter angestellter lehrer arzt empleado employe salarie dipendente medewerker pracownik funcionario`,
})

// ambiguous words name other things as well: accounts of a ledger, clients of an interface, subjects of lessons. A table
// with one of these is one of persons only if its columns say so.
var ambiguous = strings.Fields(`account client profile login owner subject party partner principal contact lead holder agent driver provider candidate visitor manager worker consumer
		operator editor author moderator admin administrator seller persona
		konto compte cuenta cliente klient parent player`)

// fillers are last words without information about the rows.
var fillers = strings.Fields("entity data dimension demographic info information table tbl master base record dim detail model account profile identity main")

// served are words before a name of persons that make them staff.
var served = strings.Fields("admin administration staff backend backoffice internal")

// roleOf returns the role that a word names, thing for none, and whether it names nothing else. Words may be joined:
// customuser, userprofile.
func roleOf(word string) (r role, sure bool) {
	if r := vocabulary[word]; r != thing {
		return r, !slices.Contains(ambiguous, word)
	}
	for _, filler := range fillers {
		if rest, ok := strings.CutSuffix(word, filler); ok && vocabulary[rest] != thing {
			return vocabulary[rest], !slices.Contains(ambiguous, rest)
		}
	}
	for _, end := range []string{"customer", "patient", "subscriber", "student", "user", "person", "employee", "profile", "account", "benutzer", "kunde", "kunden", "konto", "mitarbeiter"} {
		if strings.HasSuffix(word, end) {
			return vocabulary[end], !slices.Contains(ambiguous, end)
		}
	}
	return thing, false
}

// named returns the role that the words of a table's name give its rows, the place of the word that gives it, and
// whether that word names nothing else. The last word decides, without fillers: auth_user and user_entity hold persons,
// user_group does not.
func named(words []string) (r role, place int, sure bool) {
	place = len(words) - 1
	for place > 0 && slices.Contains(fillers, words[place]) {
		if r, _ := roleOf(words[place-1]); r == thing && vocabulary[words[place]] != thing {
			break // an account, and not that of a user
		}
		place--
	}
	if place < 0 {
		return thing, 0, false
	}
	r, sure = roleOf(words[place])
	if r != thing && slices.ContainsFunc(words[:place], func(w string) bool { return slices.Contains(served, w) }) {
		r = staff
	}
	return r, place, sure
}
