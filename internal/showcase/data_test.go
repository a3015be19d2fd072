package showcase_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/showcase"
)

func TestGenerateHasTheShapeOfTheShowcase(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{showcase.Seed, 0, 1, math.MaxUint64} {
		d := showcase.Generate(seed)
		if len(d.Users) != showcase.Users || len(d.Transactions) != showcase.Transactions {
			t.Fatalf("seed %d: %d users, %d transactions", seed, len(d.Users), len(d.Transactions))
		}
		rows, other := make([]int, showcase.Users), map[int32]int32{}
		heavyStores := make([]int, showcase.Stores)
		for i, tx := range d.Transactions {
			if int(tx.ID) != i || tx.StoreID < 0 || tx.StoreID >= showcase.Stores || tx.Spent < 5 || tx.Spent >= 500 ||
				tx.OtherID < 0 || tx.OtherID >= showcase.OtherIDs {
				t.Fatalf("seed %d: row %d is %+v", seed, i, tx)
			}
			if known, ok := other[tx.UserID]; ok && known != tx.OtherID {
				t.Fatalf("seed %d: user %d has two other ids", seed, tx.UserID)
			}
			other[tx.UserID] = tx.OtherID
			rows[tx.UserID]++
			if tx.UserID == showcase.HeavyUser {
				heavyStores[tx.StoreID]++
			}
		}
		for user, n := range rows {
			if user == showcase.HeavyUser && n != showcase.HeavyRows || user != showcase.HeavyUser && (n < 40 || n > 160) {
				t.Errorf("seed %d: user %d has %d rows", seed, user, n) // 9,500 over 99: 96 each, standard deviation 9.7
			}
		}
		upper := 0
		for store, n := range heavyStores {
			if n == 0 {
				t.Errorf("seed %d: the heavy user was never in store %d", seed, store)
			}
			if store >= showcase.Stores/2 {
				upper += n - 1
			}
		}
		// 300 rows, each in the upper half with probability 0.7494; 6 standard deviations are 45.
		if math.Abs(float64(upper)-0.7494*300) > 45 {
			t.Errorf("seed %d: %d of the heavy user's 300 free rows are in the upper half of the stores", seed, upper)
		}
	}
}

func TestIncomes(t *testing.T) {
	t.Parallel()
	var n, sum, squares float64
	for seed := range uint64(50) {
		top := 0
		d := showcase.Generate(seed)
		for _, u := range d.Users {
			n++
			sum += u.Income
			squares += (u.Income - 40_000) * (u.Income - 40_000)
			want := "high"
			switch {
			case u.ID == showcase.HeavyUser:
				want = "top"
			case u.Income < 35_000:
				want = "low"
			case u.Income < 50_000:
				want = "middle"
			}
			if u.IncomeClass != want {
				t.Errorf("seed %d: income %.0f is %s, want %s", seed, u.Income, u.IncomeClass, want)
			}
			if u.Income > d.Users[showcase.HeavyUser].Income {
				t.Errorf("seed %d: user %d earns more than the heavy user", seed, u.ID)
			}
			if u.IncomeClass == "top" {
				top++
			}
		}
		if top != 1 {
			t.Errorf("seed %d: %d users in the class top", seed, top)
		}
	}
	// 5,000 normal(40000, 10000): 6 standard errors of the mean are 849, of the standard deviation 600. False alarm
	// 4e-9.
	if mean, sd := sum/n, math.Sqrt(squares/n); math.Abs(mean-40_000) > 849 || math.Abs(sd-10_000) > 600 {
		t.Errorf("mean %.0f, standard deviation %.0f", mean, sd)
	}
}

func TestSameSeedSameData(t *testing.T) {
	t.Parallel()
	if !cmp.Equal(showcase.Generate(7), showcase.Generate(7)) {
		t.Error("the same seed gives different data")
	}
	if cmp.Equal(showcase.Generate(7), showcase.Generate(8)) {
		t.Error("two seeds give the same data")
	}
}

func TestWithoutRemovesOneUserAndNothingElse(t *testing.T) {
	t.Parallel()
	d := showcase.Generate(showcase.Seed)
	before := showcase.Generate(showcase.Seed)
	for _, user := range []int32{showcase.HeavyUser, 57} {
		d1 := d.Without(user)
		var users []showcase.User
		for _, u := range d.Users {
			if u.ID != user {
				users = append(users, u)
			}
		}
		var transactions []showcase.Transaction
		for _, tx := range d.Transactions {
			if tx.UserID != user {
				transactions = append(transactions, tx)
			}
		}
		if diff := cmp.Diff(showcase.Data{Users: users, Transactions: transactions}, d1); diff != "" {
			t.Errorf("without %d (-want +got):\n%s", user, diff)
		}
	}
	if !cmp.Equal(before, d) {
		t.Error("the data itself was changed")
	}
	if !cmp.Equal(d, d.Without(-1)) {
		t.Error("removing nobody changes something")
	}
}

func ExampleGenerate() {
	d0 := showcase.Generate(showcase.Seed)
	d1 := d0.Without(showcase.HeavyUser)
	fmt.Println(len(d0.Users), len(d0.Transactions), d0.Users[showcase.HeavyUser].IncomeClass)
	fmt.Println(len(d1.Users), len(d1.Transactions))
	// Output:
	// 100 10000 top
	// 99 9500
}
