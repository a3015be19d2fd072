package draft

import (
	"slices"
	"strings"
)

// kind is what a column says about a person.
type kind int

// The kinds of personal columns.
const (
	none kind = iota
	email
	phone
	address // postal
	network // IP addresses
	password
	login
	lastLogin
	firstName
	lastName
	fullName
	name // of a person only in a table of persons, or beside an address
	birth
	number // of a citizen, an insured, a passport
	sex
)

// facts of the kinds: how they are called in comments, and how much each says for a table of persons.
var facts = map[kind]struct {
	text   string
	weight int
}{
	email: {"e-mail", 3}, phone: {"phone", 2}, address: {"address", 1}, network: {"IP address", 0}, password: {"password", 4}, login: {"user name", 2}, lastLogin: {"last login", 3},
	firstName: {"first name", 3}, lastName: {"last name", 3}, fullName: {"full name", 2}, name: {"name", 1}, birth: {"birth date", 4}, number: {"personal number", 3}, sex: {"sex", 1},
}

// kindOf has the kinds of columns by their words, joined.
var kindOf = inverse(map[kind]string{
	email: `email emailaddress mail mailaddress emailhash emailnormalized emailconstraint primaryemail courriel correo correoelectronico`,
	phone: `phone phonenumber phoneno mobile mobilephone mobilenumber mobileno cellphone telephone telephonenumber tel telno telefon telefonnummer handynummer mobilnummer
		telefono celular telefone telefoon msisdn fax`,
	address: `address street streetaddress streetname addressline addr housenumber zip zipcode postalcode postcode strasse anschrift adresse plz rue codepostal direccion calle indirizzo adres`,
	network: `ip ipaddress ipaddr remoteaddr remoteaddress remotehost ipv`,
	password: `password passwordhash passworddigest passworddata pass passhash passwd pwd pwdhash hashedpassword encryptedpassword cryptedpassword passwort kennwort motdepasse
		mdp contrasena senha wachtwoord`,
	login: `username login loginname loginid userlogin screenname benutzername anmeldename identifiant nomutilisateur nombreusuario`,
	lastLogin: `lastlogin lastloginat lastlogindate lastlogintime lastlogintimestamp lastloggedin lastloggedinat lastsignin lastsigninat currentsigninat lastseen lastseenat lastaccess
		lastaccessat lastactive lastactiveat lastactivity lastactivityat lastvisit lastvisitat letzteanmeldung derniereconnexion ultimoacceso`,
	firstName: `firstname forename givenname fname first vorname prenom primernombre voornaam imie`,
	lastName:  `lastname surname familyname lname last middlename maidenname nachname familienname zuname nomdefamille apellido cognome sobrenome achternaam nazwisko`,
	fullName:  `fullname realname legalname completename nomcomplet nombrecompleto nomecompleto`,
	name:      `name displayname nom nombre nome naam nazwa`,
	birth: `birth birthdate birthday birthdatetime birthyear dateofbirth yearofbirth dob born bornon geburtsdatum geburtstag geburtsjahr datenaissance datedenaissance naissance
		fechanacimiento fechadenacimiento nacimiento datadinascita datanascimento geboortedatum`,
	number: `ssn ssnnumber socialsecurity socialsecuritynumber socialsecurityno nationalid nationalidnumber nationalnumber personalid personalnumber passport passportnumber passportno
		nationalinsurancenumber nhsnumber mrn medicalrecordnumber insurancenumber sozialversicherungsnummer personnummer dni cpf curp numerosecuritesociale pesel bsn`,
	sex: `gender sex geschlecht sexe sexo civilite`,
})

// inverse returns the key of each word of the values.
func inverse[K comparable](words map[K]string) map[string]K {
	keys := map[string]K{}
	for key, list := range words {
		for _, word := range strings.Fields(list) {
			keys[word] = key
		}
	}
	return keys
}

// What the types of columns cannot hold.
var (
	moments = []string{"date", "timestamp without time zone", "timestamp with time zone", "time without time zone", "time with time zone", "interval"}
	flags   = []string{"boolean", "uuid", "oid"}
)

// possible reports whether values of a type can be of a kind.
func possible(k kind, typ string) bool {
	switch k {
	case birth:
		return !slices.Contains(flags, typ)
	case lastLogin:
		return slices.Contains(moments, typ) || slices.Contains(numbers, typ)
	case phone, number:
		return !slices.Contains(flags, typ) && !slices.Contains(moments, typ)
	case sex:
		return typ != "uuid" && !slices.Contains(moments, typ)
	default:
		return !slices.Contains(flags, typ) && !slices.Contains(moments, typ) && !slices.Contains(numbers, typ)
	}
}

// kind returns what a column says about a person, and whether that is the person whose row it is: the e-mail address of
// a user, not that of an invitation. of has the words of the table's name.
func (c column) kind(of []string) (k kind, own bool) {
	if c.typ == "inet" {
		return network, false
	}
	words := wordsOf(c.name)
	own = true
	for len(words) > 0 {
		if k := kindOf[strings.Join(words, "")]; k != none && possible(k, c.typ) {
			return k, own
		}
		// user_email of users, c_phone of customers
		prefix := words[0]
		own = own && (slices.ContainsFunc(of, func(w string) bool { return strings.HasPrefix(w, prefix) }) || slices.Contains(usual, prefix))
		words = words[1:]
	}
	return none, false
}

// usual words before a kind leave a column that of the row's person.
var usual = strings.Fields("primary personal private home work delivery current hashed encrypted legal lower normalized canonical main")

// kinds returns the kinds of a table's columns, each with the name of its first column, and those of its own person.
func (t table) kinds() (all, own map[kind]string) {
	all, own = map[kind]string{}, map[kind]string{}
	words := wordsOf(t.Name)
	for _, c := range t.columns {
		k, mine := c.kind(words)
		if k == none {
			continue
		}
		if all[k] == "" {
			all[k] = c.name
		}
		if mine && own[k] == "" {
			own[k] = c.name
		}
	}
	return all, own
}

// personal returns the columns that make a table one of personal data: e-mail addresses, phone numbers, IP addresses,
// names of persons, and names with a postal address.
func (t table) personal() (names []string) {
	all, _ := t.kinds()
	if role, _, _ := named(wordsOf(t.Name)); role != thing && all[name] != "" {
		names = append(names, all[name])
	}
	for k := email; k < sex; k++ {
		switch column := all[k]; {
		case column == "" || k == name || k == lastLogin || k == password:
		case k == address && all[name] == "" && all[firstName] == "" && all[lastName] == "" && all[fullName] == "":
		default:
			names = append(names, column)
		}
	}
	return names
}
