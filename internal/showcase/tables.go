package showcase

import "github.com/dpwatch/dpwatch/internal/generate"

// Tables returns the data for the writers of package generate.
func (d Data) Tables() []generate.Table {
	return []generate.Table{
		{
			Name:    "users",
			Columns: []generate.Column{{Name: "id", SQL: "int primary key"}, {Name: "income", SQL: "double precision"}, {Name: "income_class", SQL: "text"}},
			Rows: func(yield func([]any) bool) {
				for _, u := range d.Users {
					if !yield([]any{int64(u.ID), u.Income, u.IncomeClass}) {
						return
					}
				}
			},
		},
		{
			Name: "transactions",
			Columns: []generate.Column{
				{Name: "id", SQL: "int primary key"},
				{Name: "user_id", SQL: `int references "users" ("id")`},
				{Name: "store_id", SQL: "int"},
				{Name: "other_id", SQL: "int"},
				{Name: "spent", SQL: "double precision"},
			},
			Rows: func(yield func([]any) bool) {
				for _, t := range d.Transactions {
					if !yield([]any{int64(t.ID), int64(t.UserID), int64(t.StoreID), int64(t.OtherID), t.Spent}) {
						return
					}
				}
			},
		},
	}
}
