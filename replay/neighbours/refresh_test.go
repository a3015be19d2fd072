package neighbours_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay/neighbours"
)

func TestRefresh(t *testing.T) {
	t.Parallel()
	o := shop(t)
	first := create(t, o)
	if _, err := neighbours.Create(t.Context(), o); err == nil || !strings.Contains(err.Error(), "use refresh") {
		t.Errorf("a second create: %v", err)
	}
	names := func() []string {
		return slices.DeleteFunc(state(t, o.Target), func(s string) bool { return strings.Contains(s, "_pkey") })
	}
	before := names()
	run(t, o.Source, "INSERT INTO users (id, email) VALUES (1000, 'new'); INSERT INTO visits SELECT 'new' FROM generate_series(1, 500)")
	second, err := neighbours.Refresh(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if second.Epoch <= first.Epoch {
		t.Errorf("epoch %d after %d", second.Epoch, first.Epoch)
	}
	if after := names(); !slices.Equal(before, after) {
		t.Errorf("the old set left something:\n%v\n%v", before, after)
	}
	for _, d := range verified(t, o)[:1] { // the new user has the most rows
		if d.Removed["visits"] != 500 {
			t.Errorf("%s: removed %v", d.Schema, d.Removed)
		}
	}

	// A later fault leaves the set unchanged.
	o.Paths = nil
	if _, err := neighbours.Refresh(t.Context(), o); err == nil {
		t.Error("a table without a path was copied")
	}
	run(t, o.Source, "ALTER TABLE users ADD bad tsvector DEFAULT ''; CREATE FUNCTION only_here(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1; END'; CREATE INDEX on comments (only_here(id))")
	o = withPaths(o)
	if _, err := neighbours.Refresh(t.Context(), o); err == nil || !strings.Contains(err.Error(), "create them in the shadow database first") {
		t.Errorf("an index on a function that the shadow database lacks: %v", err)
	}
	if after := names(); !slices.Equal(before, after) {
		t.Errorf("a failed refresh left something:\n%v\n%v", before, after)
	}
	if got, err := neighbours.Current(t.Context(), o.Target, o.Control); err != nil || got.Epoch != second.Epoch {
		t.Errorf("current: %+v, %v", got, err)
	}
}

func withPaths(o neighbours.Options) neighbours.Options {
	o.Paths = []neighbours.Path{
		{Table: table("public.visits"), Columns: []string{"mail"}, To: table("public.users"), On: []string{"email"}},
		{Table: table("public.documents"), Columns: []string{"user_id"}, To: table("public.users")},
	}
	return o
}

// TestKilled kills processes that create and refresh: at steps spread over the whole command, where the process waits
// to be killed, and during the swap of the sets. The shadow database then holds the complete old or new set, and the
// next command removes the rest.
func TestKilled(t *testing.T) {
	t.Parallel()
	if os.Getenv("DPWATCH_TEST_BUILD") != "" {
		t.Skip("this is the process that is killed")
	}
	spread, late := int(longtest.Count(2, 6)), int(longtest.Count(1, 4))
	for _, refresh := range []bool{false, true} {
		t.Run(fmt.Sprintf("refresh=%t", refresh), func(t *testing.T) {
			t.Parallel()
			o := shop(t)
			empty := state(t, o.Target)
			steps := 0 // before the sets are swapped
			o.Progress = func(p neighbours.Progress) {
				if p.Step != "clean up" {
					steps++
				}
			}
			o.Workers = 1
			set := create(t, o)
			o.Progress = nil
			if !refresh {
				if err := neighbours.Drop(t.Context(), o); err != nil {
					t.Fatal(err)
				}
				set = neighbours.Set{}
			}
			finished, interrupted := 0, 0
			for i := range spread + late {
				step := 1 + i*steps/spread
				if i < spread {
					killAt(t, o, refresh, step)
				} else { // during the swap, which takes some milliseconds, and the removal of the old set
					step = steps + (i-spread)/6
					kill(t, o, refresh, step, time.Duration((i-spread)%6)*2*time.Millisecond)
				}
				got, err := neighbours.Current(t.Context(), o.Target, o.Control)
				switch {
				case refresh && err == nil && got.Epoch == set.Epoch, !refresh && errors.Is(err, neighbours.ErrNoSet):
					interrupted++
				case err == nil && got.Epoch > set.Epoch:
					finished++
				default:
					t.Fatalf("killed at step %d: %+v, %v", step, got, err)
				}
				if err == nil {
					verified(t, o)
					set = got
				}
				if !refresh {
					if err := neighbours.Drop(t.Context(), o); err != nil {
						t.Fatal(err)
					}
					if after := state(t, o.Target); !slices.Equal(empty, after) {
						t.Fatalf("killed at step %d: drop left %v", step, after)
					}
					set = neighbours.Set{}
				}
			}
			t.Logf("%d interrupted, %d finished, in %d steps", interrupted, finished, steps)
			if interrupted < spread {
				t.Errorf("%d processes were interrupted, of %d that waited to be killed", interrupted, spread)
			}
			if err := neighbours.Drop(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			if after := state(t, o.Target); !slices.Equal(empty, after) {
				t.Errorf("drop left %v", after)
			}
		})
	}
}

// kill runs the command in another process and kills it delay after the given number of steps.
func kill(t *testing.T, o neighbours.Options, refresh bool, steps int, delay time.Duration) {
	t.Helper()
	child := toBeKilled(t, o, refresh, 0)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); steps > 0 && lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "step ") {
			steps--
		}
	}
	time.Sleep(delay)
	_ = child.Process.Kill()
	_ = child.Wait()
}

// killAt runs the command in another process, which waits at a step, and kills it there.
func killAt(t *testing.T, o neighbours.Options, refresh bool, step int) {
	t.Helper()
	child := toBeKilled(t, o, refresh, step)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "waiting"; {
	}
	_ = child.Process.Kill()
	_ = child.Wait()
}

// toBeKilled returns the other process; wait is the step at which it waits, 0 for none.
func toBeKilled(t *testing.T, o neighbours.Options, refresh bool, wait int) *exec.Cmd {
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestBuildToBeKilled$")
	child.Env = append(os.Environ(), "DPWATCH_TEST_BUILD="+fmt.Sprint(refresh), "SOURCE="+o.Source, "TARGET="+o.Target, "WAIT="+strconv.Itoa(wait))
	return child
}

// TestBuildToBeKilled is run by TestKilled in another process.
func TestBuildToBeKilled(t *testing.T) {
	mode := os.Getenv("DPWATCH_TEST_BUILD")
	if mode == "" {
		t.Skip("run by TestKilled")
	}
	o := options(os.Getenv("SOURCE"), os.Getenv("TARGET"))
	o.Workers = 1
	steps, wait := 0, os.Getenv("WAIT")
	o.Progress = func(p neighbours.Progress) {
		fmt.Println("step", p.Step)
		if steps++; strconv.Itoa(steps) == wait {
			fmt.Println("waiting")
			time.Sleep(time.Hour)
		}
	}
	build := neighbours.Create
	if mode == "true" {
		build = neighbours.Refresh
	}
	if _, err := build(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// TestDropInterrupted cancels a drop while a table of the set is in use: then there is no set, not a part of one, and
// the next command removes the rest.
func TestDropInterrupted(t *testing.T) {
	t.Parallel()
	o := shop(t)
	empty := state(t, o.Target)
	create(t, o)
	conn := pgtest.Connect(t, o.Target)
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "LOCK TABLE d0.users IN ACCESS SHARE MODE"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- neighbours.Drop(ctx, o) }()
	for {
		select {
		case err := <-done:
			t.Fatalf("drop ended under a lock: %v", err)
		default:
		}
		var waits bool
		if err := tx.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_class c ON c.oid = l.relation WHERE NOT l.granted AND c.relname = 'users')").Scan(&waits); err != nil {
			t.Fatal(err)
		}
		if waits {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("drop: %v", err)
	}
	if got, err := neighbours.Current(t.Context(), o.Target, o.Control); !errors.Is(err, neighbours.ErrNoSet) {
		t.Errorf("current: %+v, %v", got, err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := neighbours.Drop(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if after := state(t, o.Target); !slices.Equal(empty, after) {
		t.Errorf("drop left %v", after)
	}
}

// TestCancelled cancels a create: the command itself removes everything.
func TestCancelled(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	o := shop(t)
	create(t, o)
	if err := neighbours.Drop(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	empty := state(t, o.Target)
	for _, step := range []string{"copy users", "choose units", "make d1_1"} {
		ctx, cancel := context.WithCancel(t.Context())
		seen := false
		o.Progress = func(p neighbours.Progress) {
			if strings.HasPrefix(p.Step, step) {
				seen = true
				cancel()
			}
		}
		if _, err := neighbours.Create(ctx, o); !errors.Is(err, context.Canceled) || !seen {
			t.Errorf("cancelled at %s: %v", step, err)
		}
		cancel()
		left := lines(t, o.Target, "SELECT nspname FROM pg_namespace WHERE nspname ~ '^(dpwatch_|d0|d1|app)'")
		if len(left) > 0 {
			t.Errorf("cancelled at %s: left %v", step, left)
		}
	}
	if err := neighbours.Drop(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if after := state(t, o.Target); !slices.Equal(empty, after) {
		t.Errorf("drop left %v", after)
	}
}

// TestSnapshot writes to the source during the copy: the copy shows one moment.
func TestSnapshot(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	o := shop(t)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	conn, err := pgx.Connect(t.Context(), o.Source)
	if err != nil {
		t.Fatal(err)
	}
	go func() { // each transaction adds one user and one visit
		for i := 5000; ctx.Err() == nil; i++ {
			if _, err := conn.Exec(ctx, fmt.Sprintf("BEGIN; INSERT INTO visits VALUES ('w%[1]d'); INSERT INTO users (id, email) VALUES (%[1]d, 'w%[1]d'); COMMIT", i)); err != nil && ctx.Err() == nil {
				done <- err
				return
			}
		}
		done <- conn.Close(context.Background())
	}()
	create(t, o)
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	got := lines(t, o.Target, "SELECT count(*) FILTER (WHERE u.id IS NULL) || ' ' || count(*) FILTER (WHERE v.mail IS NULL) FROM d0.users u FULL JOIN d0.visits v ON v.mail = u.email WHERE coalesce(u.email, v.mail) LIKE 'w%'")
	if got[0] != "0 0" {
		t.Errorf("users without visits and visits without users: %s", got[0])
	}
}
