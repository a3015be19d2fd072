// Package browser drives a real headless Chromium in tests of pages. A page that logs an error, throws, breaks its
// content security policy or cannot load something makes the test fail.
package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// names are those of the program; the last is where macOS has it.
var names = []string{"chromium", "chromium-browser", "google-chrome", "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"}

// Path returns the path of a Chromium; "" = there is none.
func Path() string {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// Need skips the test if there is no Chromium.
func Need(t *testing.T) {
	t.Helper()
	if Path() == "" {
		t.Skip("SKIPPED: there is no Chromium: deploy/chromium/ensure.sh installs it")
	}
}

// Tab is a tab of a Chromium.
type Tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex // guards the following
	faults   []string
	expected []string
}

// Open starts a Chromium with one tab. Both end with the test.
func Open(t *testing.T) *Tab {
	t.Helper()
	Need(t)
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(Path()), chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("force-color-profile", "srgb"), chromedp.WSURLReadTimeout(10*time.Minute))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, stop := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
	ctx, end := chromedp.NewContext(allocator)
	b := &Tab{t: t, ctx: ctx}
	chromedp.ListenTarget(ctx, b.listen)
	t.Cleanup(func() {
		end()
		stop()
		for _, fault := range b.Faults() {
			t.Errorf("browser: %s", fault)
		}
	})
	b.do(log.Enable(), runtime.Enable())
	b.Size(1280, 900)
	return b
}

// listen collects what pages must not do.
func (b *Tab) listen(event any) {
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning || e.Type == runtime.APITypeAssert {
			var words []string
			for _, a := range e.Args {
				words = append(words, string(a.Value)+a.Description)
			}
			b.add("console: " + strings.Join(words, " "))
		}
	case *runtime.EventExceptionThrown:
		b.add("exception: " + e.ExceptionDetails.Error())
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError || e.Entry.Level == log.LevelWarning {
			b.add(fmt.Sprintf("%s: %s (%s)", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	}
}

func (b *Tab) add(fault string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = append(b.faults, fault)
}

// Expect allows faults that contain a text: those of a page that must fail.
func (b *Tab) Expect(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expected = append(b.expected, text)
}

// Faults returns the faults so far that are not expected.
func (b *Tab) Faults() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(b.faults), func(fault string) bool {
		return slices.ContainsFunc(b.expected, func(text string) bool { return strings.Contains(fault, text) })
	})
}

func (b *Tab) do(actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		b.t.Fatalf("browser: %v", err)
	}
}

// Go loads a page.
func (b *Tab) Go(url string) { b.t.Helper(); b.do(chromedp.Navigate(url)) }

// Text returns the visible text of the first element that a CSS selector selects.
func (b *Tab) Text(selector string) (text string) {
	b.t.Helper()
	b.do(chromedp.Text(selector, &text, chromedp.ByQuery))
	return text
}

// Click clicks an element that loads another page, and waits for that.
func (b *Tab) Click(selector string) {
	b.t.Helper()
	if _, err := chromedp.RunResponse(b.ctx, chromedp.Click(selector, chromedp.ByQuery)); err != nil {
		b.t.Fatalf("browser: click %s: %v", selector, err)
	}
}

// Fill sets the value of a field.
func (b *Tab) Fill(selector, value string) {
	b.t.Helper()
	b.do(chromedp.SetValue(selector, value, chromedp.ByQuery))
}

// Eval evaluates an expression, or waits for the promise that it is.
func (b *Tab) Eval(expression string, result any) {
	b.t.Helper()
	b.do(chromedp.Evaluate(expression, result, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
}

// Wait waits until an expression is true.
func (b *Tab) Wait(expression string) {
	b.t.Helper()
	b.do(chromedp.Poll(expression, nil, chromedp.WithPollingTimeout(0)))
}

// Key presses a key, as package kb names it.
func (b *Tab) Key(key string) { b.t.Helper(); b.do(chromedp.KeyEvent(key)) }

// Size sets the size of the window.
func (b *Tab) Size(width, height int64) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height))
}

// Scheme sets the colour scheme: dark or light.
func (b *Tab) Scheme(name string) {
	b.t.Helper()
	b.do(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}))
}

// Screenshot writes what the window shows, as PNG.
func (b *Tab) Screenshot(path string) {
	b.t.Helper()
	var png []byte
	b.do(chromedp.CaptureScreenshot(&png))
	if err := os.WriteFile(path, png, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// PDF returns the page as it is printed.
func (b *Tab) PDF() (pdf []byte) {
	b.t.Helper()
	b.do(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		pdf, _, err = page.PrintToPDF().WithPreferCSSPageSize(true).Do(ctx)
		return err
	}))
	return pdf
}

// Print shows the page as it is printed, with the colours of a light page.
func (b *Tab) Print() {
	b.t.Helper()
	b.do(emulation.SetEmulatedMedia().WithMedia("print"))
}

// Overflow returns elements that are wider than the window; in one that is less than 1000 wide, regions that scroll may
// hold them. "" = none.
func (b *Tab) Overflow() (elements string) {
	b.t.Helper()
	b.Eval(`(() => {
		const width = document.documentElement.clientWidth
		const scrolled = width < 1000 ? [] : [...document.querySelectorAll('.wide')].filter((e) => e.scrollWidth > e.clientWidth + 1)
		if (scrolled.length) return scrolled.map((e) => 'the table ' + e.getAttribute('aria-label')).join(', ')
		if (document.documentElement.scrollWidth <= width) return ''
		return [...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > width + 1 && !e.closest('.wide, pre')).slice(0, 5)
			.map((e) => e.tagName + '.' + e.className + ' ' + Math.round(e.getBoundingClientRect().right)).join(', ') || 'the document'
	})()`, &elements)
	return elements
}
