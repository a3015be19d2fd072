package showcase

import (
	"math/rand/v2"
	"slices"
)

// Sizes of the showcase data.
const (
	Users         = 100
	Transactions  = 10_000
	Stores        = 200
	OtherIDs      = 10
	HeavyUser     = 0   // the user that D1 lacks
	HeavyRows     = 500 // number of the heavy user's transactions; no other user has more
	Seed          = 42  // seed of the demo's data
	meanIncome    = 40_000
	sdIncome      = 10_000
	lowestSpent   = 5
	highestSpent  = 500
	lowIncome     = 35_000
	highIncome    = 50_000
	topClass      = "top"
	generatorMark = 0x64707761746368 // the second half of the generator's seed
)

// User is one row of users.
type User struct {
	ID          int32
	Income      float64
	IncomeClass string // low, middle, high; top only for the heavy user
}

// Transaction is one row of transactions.
type Transaction struct {
	ID, UserID, StoreID, OtherID int32
	Spent                        float64
}

// Data is one dataset. Both slices are ordered by ID and must not be modified.
type Data struct {
	Users        []User
	Transactions []Transaction
}

// Generate returns the showcase data; equal seeds give equal data.
func Generate(seed uint64) Data {
	rng := rand.New(rand.NewPCG(seed, generatorMark))
	return Data{Users: users(rng), Transactions: transactions(rng)}
}

// Without returns the neighbour: the data without one user and that user's transactions. It does not modify d.
func (d Data) Without(user int32) Data {
	return Data{
		Users:        slices.DeleteFunc(slices.Clone(d.Users), func(u User) bool { return u.ID == user }),
		Transactions: slices.DeleteFunc(slices.Clone(d.Transactions), func(t Transaction) bool { return t.UserID == user }),
	}
}

// users draws the incomes and assigns the highest to the heavy user.
func users(rng *rand.Rand) []User {
	all := make([]User, Users)
	highest := 0
	for i := range all {
		all[i] = User{ID: int32(i), Income: meanIncome + sdIncome*rng.NormFloat64()}
		if all[i].Income > all[highest].Income {
			highest = i
		}
	}
	all[HeavyUser].Income, all[highest].Income = all[highest].Income, all[HeavyUser].Income
	for i := range all {
		all[i].IncomeClass = incomeClass(all[i].Income)
	}
	all[HeavyUser].IncomeClass = topClass
	return all
}

func incomeClass(income float64) string {
	switch {
	case income < lowIncome:
		return "low"
	case income < highIncome:
		return "middle"
	}
	return "high"
}

// transactions draws visits to stores, in random order, and the amounts spent.
func transactions(rng *rand.Rand) []Transaction {
	type visit struct{ user, store int32 }
	visits := make([]visit, 0, Transactions)
	for _, store := range heavyStores(rng) {
		visits = append(visits, visit{HeavyUser, store})
	}
	var rows [Users]int
	for len(visits) < Transactions {
		user := 1 + rng.Int32N(Users-1)
		if rows[user] < HeavyRows {
			rows[user]++
			visits = append(visits, visit{user, rng.Int32N(Stores)})
		}
	}
	rng.Shuffle(len(visits), func(i, j int) { visits[i], visits[j] = visits[j], visits[i] })

	var other [Users]int32
	for i := range other {
		other[i] = rng.Int32N(OtherIDs)
	}
	all := make([]Transaction, len(visits))
	for i, v := range visits {
		spent := lowestSpent + (highestSpent-lowestSpent)*rng.Float64()
		all[i] = Transaction{ID: int32(i), UserID: v.user, StoreID: v.store, OtherID: other[v.user], Spent: spent}
	}
	return all
}

// heavyStores returns the heavy user's stores: each once, and further ones with a probability proportional to the
// store's id.
func heavyStores(rng *rand.Rand) []int32 {
	stores := make([]int32, 0, HeavyRows)
	for s := range int32(Stores) {
		stores = append(stores, s)
	}
	for len(stores) < HeavyRows {
		// The larger of two draws is s with probability (2s+1)/Stores^2; the strictly larger one
		// 2s/(Stores*(Stores-1)).
		a, b := rng.Int32N(Stores), rng.Int32N(Stores)
		if a != b {
			stores = append(stores, max(a, b))
		}
	}
	return stores
}
