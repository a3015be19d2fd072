package audit

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// TestDeskUnderLock: no method of the Auditor uses the desk, its state or its methods, without holding the lock:
// inside a function that it gives to locked, after mu.Lock, or in a method whose comment says that its caller holds
// Auditor.mu.
func TestDeskUnderLock(t *testing.T) {
	t.Parallel()
	fset := token.NewFileSet()
	names, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, n := range names {
		if strings.HasSuffix(n.Name(), ".go") && !strings.HasSuffix(n.Name(), "_test.go") {
			f, err := parser.ParseFile(fset, n.Name(), nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
	}
	desk, uses := ofDesk(files), 0
	for _, f := range files {
		for _, d := range f.Decls {
			m, ok := d.(*ast.FuncDecl)
			if !ok || receiver(m) != "Auditor" || m.Doc != nil && strings.Contains(strings.ReplaceAll(m.Doc.Text(), "\n", " "), "caller holds Auditor.mu") {
				continue
			}
			n := outsideLock(m, desk, func(at token.Pos, what string) {
				t.Errorf("%s: %s uses %s of the desk without its lock", fset.Position(at), m.Name.Name, what)
			})
			uses += n
		}
	}
	if uses < 50 { // otherwise nothing was checked
		t.Errorf("%d uses of the desk", uses)
	}
}

// ofDesk returns the names of the desk's methods and of its state. Its options never change.
func ofDesk(files []*ast.File) map[string]bool {
	all := map[string]bool{}
	for _, f := range files {
		for _, d := range f.Decls {
			if m, ok := d.(*ast.FuncDecl); ok && receiver(m) == "desk" {
				all[m.Name.Name] = true
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.TypeSpec); ok && s.Name.Name == "desk" {
				for _, field := range s.Type.(*ast.StructType).Fields.List {
					for _, name := range field.Names {
						all[name.Name] = true
					}
				}
			}
			return true
		})
	}
	delete(all, "opt")
	return all
}

// receiver returns the type of a method's receiver; "" = it is a function.
func receiver(m *ast.FuncDecl) string {
	if m.Recv == nil {
		return ""
	}
	x := m.Recv.List[0].Type
	if star, ok := x.(*ast.StarExpr); ok {
		x = star.X
	}
	name, _ := x.(*ast.Ident)
	return name.Name
}

// outsideLock reports the uses of the desk in a method without the lock, and returns the number of all uses. It reads
// the method from the top: what is after mu.Lock and before the next mu.Unlock that is not deferred holds the lock.
func outsideLock(m *ast.FuncDecl, desk map[string]bool, report func(token.Pos, string)) (uses int) {
	held, depth := false, 0
	var walk func(n ast.Node)
	walk = func(n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.DeferStmt:
				if text(n.Call.Fun) == "a.mu.Unlock" {
					return false
				}
			case *ast.CallExpr:
				switch text(n.Fun) {
				case "a.mu.Lock":
					held = true
				case "a.mu.Unlock":
					held = false
				case "a.locked":
					if f, ok := n.Args[0].(*ast.FuncLit); ok {
						depth++
						walk(f.Body)
						depth--
						return false
					}
					return false // a method of the desk
				}
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "a" && desk[n.Sel.Name] {
					if uses++; !held && depth == 0 {
						report(n.Pos(), n.Sel.Name)
					}
				}
			}
			return true
		})
	}
	walk(m.Body)
	return uses
}

// text returns a selector as it is written; "" for other expressions.
func text(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return text(x.X) + "." + x.Sel.Name
	}
	return ""
}
