// Follows the status: when it changes, the elements with data-live are fetched again and replaced where they differ. Without this file the pages
// show what was true when they were loaded.
const pause = 3000 // milliseconds between two updates

const status = document.getElementById('live')
let wanted = false
let busy = false
let attach = () => {}

// Charts show the values of the nearest point.
import('/static/chart.js').then((charts) => {
  attach = charts.attach
  attach(document)
}).catch(() => {})

// keep carries over what a reader opened or where the focus is.
function replace(old, fresh) {
  if (old.outerHTML === fresh.outerHTML || old.contains(document.activeElement) && document.activeElement.matches('input, select, textarea')) return
  const open = [...old.querySelectorAll('details')].map((d) => d.open)
  fresh.querySelectorAll('details').forEach((d, i) => { d.open = open[i] ?? d.open })
  const focused = old.contains(document.activeElement) ? document.activeElement.getAttribute('href') : null
  old.replaceWith(fresh)
  if (focused) fresh.querySelector(`[href="${CSS.escape(focused)}"]`)?.focus()
  attach(fresh)
}

async function update() {
  if (busy || document.hidden) { wanted = true; return }
  busy = true
  wanted = false
  try {
    const answer = await fetch(location.href, { headers: { Accept: 'text/html' }, redirect: 'error' })
    if (answer.ok) {
      const page = new DOMParser().parseFromString(await answer.text(), 'text/html')
      for (const old of document.querySelectorAll('[data-live]')) {
        const fresh = page.querySelector(`[data-live="${CSS.escape(old.dataset.live)}"]`)
        if (fresh) replace(old, document.importNode(fresh, true))
      }
      document.title = page.title
    }
  } catch { /* the stream reconnects and says so */ }
  setTimeout(() => { busy = false; if (wanted) update() }, pause)
}

if (document.querySelector('[data-live]') && location.pathname !== '/login') {
  const events = new EventSource('/events')
  events.addEventListener('open', () => { status.textContent = 'This page is kept up to date.' })
  events.addEventListener('error', () => { status.textContent = 'The connection is lost: this page shows an earlier status.' })
  events.addEventListener('change', update)
  document.addEventListener('visibilitychange', () => { if (!document.hidden && wanted) update() })
}
